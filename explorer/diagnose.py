"""`python -m explorer.diagnose file.py:Class [--weights FILE]`.

Run, and never imported: `explorer.diagnose` is the function of that name.
"""

import sys

from explorer.diagnosis.command_line import main

if __name__ == "__main__":
    sys.exit(main())
