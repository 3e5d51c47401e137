"""``python -m bowtienet``: the command line."""

from bowtienet.cli import main

if __name__ == "__main__":
    main()
