"""How it runs: typed libraries loaded through ctypes, without LLVM on the path."""
