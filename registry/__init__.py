"""How a package travels: index, trust, fetching and publishing."""
