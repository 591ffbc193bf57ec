# Runs one of SQLite's test scripts in tclsh, outside of upstream's testfixture:
#   tclsh sqlite_harness.tcl LIBRARY TESTS FILE
# LIBRARY is tclsqlite.c, linked with the SQLite that is tested. What only testfixture has (switches and counters of the
# library's inside) does nothing here, so a script that needs it fails or stops, with any library.

lassign $argv library tests file
load $library Sqlite3

# What the library was compiled without; all else counts as there.
array set ::sqlite_options {
  api_armor 0 atomicwrite 0 builtin_test 0 casesensitivelike 0 columnmetadata 0 cursorhints 0 debug 0
  default_autovacuum 0 fts3 0 fts4 0 geopoly 0 hiddencolumns 0 icu 0 icu_collations 0 load_ext 0 memdebug 0 mem3 0
  mem5 0 normalize 0 parser_trace 0 preupdate 0 rbu 0 secure_delete 0 session 0 shared_cache 0 snapshot 0 stat4 0
  stmtvtab 0 tclvar 0 trace 0 unlock_notify 0 update_delete_limit 0 userauth 0 zipvfs 0
}
trace add variable ::sqlite_options read {apply {{array name operation} {
  if {$name ne "" && ![info exists ::sqlite_options($name)]} { set ::sqlite_options($name) 1 }
}}}
foreach {name value} {
  TEMP_STORE 1 SQLITE_MAX_COMPOUND_SELECT 500 SQLITE_DEFAULT_PAGE_SIZE 4096 SQLITE_MAX_PAGE_SIZE 65536
  SQLITE_MAX_LENGTH 1000000000 SQLITE_MAX_COLUMN 2000 SQLITE_MAX_SQL_LENGTH 1000000000 SQLITE_MAX_EXPR_DEPTH 1000
  SQLITE_MAX_VDBE_OP 250000000 SQLITE_MAX_FUNCTION_ARG 127 SQLITE_MAX_VARIABLE_NUMBER 32766
  SQLITE_DEFAULT_CACHE_SIZE -2000 SQLITE_MAX_LIKE_PATTERN_LENGTH 50000 SQLITE_MAX_TRIGGER_DEPTH 1000
  SQLITE_MAX_ATTACHED 10
} { set ::$name $value }

rename unknown tcl_unknown
proc unknown {name args} {
  set only {^(sqlite3_|sqlite_|database_|do_malloc|install_|autoinstall_|register_|vfs_|test_|file_control)}
  append only {|^(db_|extra_schema|optimization|load_static|reset_prng|save_prng|restore_prng|print_explain|breakpoint)}
  if {[regexp $only $name]} { return 0 }
  uplevel 1 [list tcl_unknown $name {*}$args]
}
proc working_64bit_int {} { return 1 }

set testdir $tests
set argv [list]
set argv0 $file
source $tests/tester.tcl
source $file
