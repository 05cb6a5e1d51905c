"""Browser tests of the page.

A package, so that the package-scoped app and browser stop after its last test.
"""
