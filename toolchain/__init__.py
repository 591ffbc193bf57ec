"""The author's side: C and C++ sources become one portable VIS module and a package."""
