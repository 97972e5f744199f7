"""Entry point of `python tools/clients`."""

from comparison import main

if __name__ == "__main__":
    main()
