"""Entry point of `python tools/suite`."""

from command import main

if __name__ == "__main__":
    main()
