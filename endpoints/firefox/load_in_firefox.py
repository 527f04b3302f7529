"""Firefox behind the endpoint contract (`endpoints/contract/browsers.md`): a client that loads pages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "browser-family"))

from browser_endpoint import main
from firefox_page import Firefox

if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent, Firefox))
