"""What a person does in a browser. A package, so that the app and the browser end with its last test."""
