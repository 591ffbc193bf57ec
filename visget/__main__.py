"""``python -m visget`` is the command ``visget``."""

from visget.cli import main

if __name__ == "__main__":
    main()
