"""One minimal module for each VIS rule: what breaks it, where the finding must point, and what the message says.

The text is LLVM IR by hand; `module_text` gives it the neutral head, has LLVM parse and print it, and `ordinal_lines`
makes a line table in which instruction n of every function stands on line 100 + n of "f.c", and the function itself
on line 99.
"""

# ruff: noqa: E501 - a table, one row for each case
from __future__ import annotations

from dataclasses import dataclass

from visget.format.irtext import scan
from visget.format.lines import FunctionLines, LineTable, Place
from visget.format.module import parse_text, text_of
from visget.format.profile import DATALAYOUT, TRIPLE

HEAD = f'source_filename = "vis"\ntarget datalayout = "{DATALAYOUT}"\ntarget triple = "{TRIPLE}"\n'
FLAGS = '!llvm.module.flags = !{!900}\n!900 = !{i32 8, !"PIC Level", i32 2}\n'
F = "define void @f() {\n  ret void\n}\n"


def module_text(body: str, *, head: str = HEAD, flags: str = FLAGS) -> str:
    """Return LLVM's print of a module."""
    return text_of(parse_text(f"{head}{body}\n{flags}"))


def ordinal_lines(text: str) -> LineTable:
    """Return the line table described above."""
    return LineTable(
        functions={
            function.name: FunctionLines(
                start=Place("f.c", 99),
                ordinals=tuple(range(len(function.starts))),
                places=tuple(Place("f.c", 100 + n) for n in range(len(function.starts))),
            )
            for function in scan(text).definitions()
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One module that breaks one rule."""

    rule: str
    body: str
    says: str
    function: str | None = None
    ordinal: int | None = None
    """The instruction at fault; None when the function or module as a whole is."""
    also: tuple[str, ...] = ()
    """Other rules that the module cannot help breaking."""
    exports: tuple[str, ...] = ("f",)
    imports: tuple[str, ...] | None = None
    fp_contract: str | None = None
    head: str = HEAD
    flags: str = FLAGS


def _f(*lines: str, before: str = "", after: str = "", head: str = "define void @f()") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{before}\n{head} {{\n{body}\n  ret void\n}}\n{after}\n"


def _attribute(text: str) -> str:
    return f"define void @f() #0 {{\n  ret void\n}}\nattributes #0 = {{ {text} }}\n"


_P = "define void @f(ptr %p)"
_LOOP = """define void @f(ptr %p) {{
  br label %a
a:
  %v = load volatile i1, ptr %p
  br i1 %v, label %a, label %b, !llvm.loop !1
b:
  {more}
}}
!1 = distinct !{{!1, !2}}
!2 = !{{{mark}}}
"""

CASES = (
    Case(rule="VIS-101", body=F, head=HEAD.replace("riscv64-unknown-linux-musl", "x86_64-pc-linux-gnu"),
         says="the target triple is x86_64-pc-linux-gnu"),
    Case(rule="VIS-101", body=F, head='source_filename = "vis"\n' + HEAD.split("\n")[1] + "\n",
         says="the target triple is missing"),
    Case(rule="VIS-102", body=F, head=HEAD.replace("e-m:e", "E-m:e"), says="the data layout is E-m:e"),
    Case(rule="VIS-103", body=F, flags=FLAGS.replace("!{!900}", "!{!900, !901}")
         + '!901 = !{i32 1, !"target-abi", !"lp64d"}\n', says='!"target-abi", !"lp64d"} is not one of VIS'),
    Case(rule="VIS-103", body=F, flags="", says='"PIC Level" is missing'),
    Case(rule="VIS-103", body=F, flags=FLAGS.replace("!{!900}", "!{!900, !901}")
         + '!901 = !{i32 1, !"wchar_size", i32 2}\n', says='!"wchar_size", i32 2} is not one of VIS'),
    Case(rule="VIS-104", body=_attribute('"target-cpu"="generic-rv64"'), function="f",
         says='the attribute "target-cpu" belongs to one target'),
    Case(rule="VIS-104", body=_attribute('"fentry-call"="true"'), function="f",
         says='the attribute "fentry-call" is not one of VIS'),
    Case(rule="VIS-104", body=_f("call void @g() #0", after="define internal void @g() {\n  ret void\n}\n"
         'attributes #0 = { "tune-cpu"="generic" }'), function="f", ordinal=0, says='the attribute "tune-cpu"'),
    Case(rule="VIS-105", body=F, head=HEAD.replace('"vis"', '"/home/author/x.c"'), says='"/home/author/x.c", not "vis"'),
    Case(rule="VIS-105", body="define void @f() !dbg !3 {\n  ret void\n}\n!llvm.dbg.cu = !{!1}\n"
         "!1 = distinct !DICompileUnit(language: DW_LANG_C11, file: !2, emissionKind: LineTablesOnly)\n"
         '!2 = !DIFile(filename: "x.c", directory: ".")\n'
         '!3 = distinct !DISubprogram(name: "f", file: !2, line: 1, unit: !1, spFlags: DISPFlagDefinition)\n',
         flags=FLAGS.replace("!{!900}", "!{!900, !901}") + '!901 = !{i32 2, !"Debug Info Version", i32 3}\n',
         says="debug information is left", also=("VIS-103",)),
    Case(rule="VIS-106", body=F + '!llvm.linker.options = !{!1}\n!1 = !{!"-levil"}\n',
         says="!llvm.linker.options gives orders to the user's linker"),
    Case(rule="VIS-106", body=F + '!llvm.dependent-libraries = !{!1}\n!1 = !{!"evil"}\n',
         says="!llvm.dependent-libraries gives orders"),
    Case(rule="VIS-106", body=F + '!llvm.ident = !{!1}\n!1 = !{!"clang"}\n', says="!llvm.ident is not one of VIS"),
    Case(rule="VIS-107", body='module asm ".globl pwn"\n' + F, says="1 line of file-scope assembly"),
    Case(rule="VIS-108", body="$g = comdat any\n" + _f("call void @g()", after="define internal void @g() comdat {\n"
         "  ret void\n}"), function="f", ordinal=0, says="g is in a comdat group"),
    Case(rule="VIS-109", body='define void @f() section ".init" {\n  ret void\n}\n', function="f",
         says='the section ".init"'),
    Case(rule="VIS-109", body=_f("store ptr null, ptr @x", before='@x = internal global ptr null, section ".init_array"'),
         function="f", ordinal=0, says='x asks for the section ".init_array"'),
    Case(rule="VIS-110", body="@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
         "[{ i32, ptr, ptr } { i32 50, ptr @f, ptr null }]\n" + F, says="runs f with the priority 50"),
    Case(rule="VIS-110", body="@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] "
         "[{ i32, ptr, ptr } { i32 65535, ptr @free, ptr null }]\ndeclare void @free(ptr)\n" + F,
         says="has an entry free that is not a plain function"),
    Case(rule="VIS-111", body='@llvm.cmdline = internal constant [1 x i8] c"x"\n' + F, says="llvm.cmdline is an order"),
    Case(rule="VIS-112", body=_f("store i8 0, ptr @x", before="@x = internal global [268435457 x i8] zeroinitializer"),
         says="the static data has 268435457 bytes"),
    Case(rule="VIS-113", body=F + "".join(f"declare void @g{n}()\n" for n in range(50_000)),
         says="the module has 50001 functions"),
    Case(rule="VIS-114", body=_attribute("sspstrong"), function="f", says="the attribute sspstrong"),
    Case(rule="VIS-114", body=_attribute("sanitize_address"), function="f", says="the attribute sanitize_address"),
    Case(rule="VIS-114", body="@v = internal global i32 1, sanitize_memtag\ndefine ptr @f() {\n  ret ptr @v\n}\n", function="f", ordinal=0, says="asks for sanitize_memtag"),
    Case(rule="VIS-114", body=_attribute("returns_twice"), function="f", says="returns_twice on another function"),
    Case(rule="VIS-114", body=_f("call void @g() #0", after="define internal void @g() {\n  ret void\n}\n"
         "attributes #0 = { returns_twice }"), function="f", ordinal=0, says="returns_twice on another function"),
    Case(rule="VIS-114", body=_attribute("naked noinline"), function="f", says="the attribute naked"),
    Case(rule="VIS-114", body='define void @f() gc "erlang" {\n  ret void\n}\n', function="f", says="a `gc` clause"),

    Case(rule="VIS-201", body='define internal void @"a\\01b"() {\n  ret void\n}\n' + _f('call void @"a\\01b"()'),
         function="a\\01b", says='the symbol name "a\\01b"'),
    Case(rule="VIS-201", body='define void @"\\01raw;.globl x"() {\n  ret void\n}\n', exports=("\\01raw;.globl x",),
         function="\\01raw;.globl x", says="is not plain"),
    Case(rule="VIS-201", body=f"define void @{'a' * 300}() {{\n  ret void\n}}\n", exports=("a" * 300,),
         function="a" * 300, says="(300 characters) is not plain"),
    Case(rule="VIS-202", body="@i = internal ifunc void (), ptr @r\ndefine internal ptr @r() {\n  ret ptr @f\n}\n" + F,
         says="i is an ifunc"),
    Case(rule="VIS-203", body="@g = alias void (), ptr @h\n" + F + "define internal void @h() {\n  ret void\n}\n",
         exports=("f", "g"), says="g is an exported alias of h"),
    Case(rule="VIS-203", body="@x = internal global [2 x i32] zeroinitializer\n@g = internal alias i32, "
         "getelementptr (i8, ptr @x, i64 4)\n" + _f("store i32 1, ptr @g"), says="an alias of something other than one"),
    Case(rule="VIS-204", body="define weak void @f() {\n  ret void\n}\n", function="f", says="f has the linkage weak"),
    Case(rule="VIS-204", body="@x = common global i32 0\n" + _f("store i32 1, ptr @x"), function="f", ordinal=0,
         says="the linkage common"),
    Case(rule="VIS-204", body="@x = extern_weak global i32\n" + _f("store i32 1, ptr @x"), function="f", ordinal=0,
         says="linkage extern_weak", also=("VIS-501",)),
    Case(rule="VIS-204", body=_f("call void @g()", after="define linkonce_odr void @g() {\n  ret void\n}"),
         function="g", says="the linkage linkonce_odr"),
    Case(rule="VIS-205", body="define hidden void @f() {\n  ret void\n}\n", function="f", says="but hidden"),
    Case(rule="VIS-206", body="@stdin = external thread_local global ptr\n" + _f("store ptr null, ptr @stdin"),
         function="f", ordinal=0, says="stdin is a thread-local variable of another library"),
    Case(rule="VIS-206", body="@t = thread_local global i32 0\n" + _f("store i32 0, ptr @t"), exports=("f", "t"),
         function="f", ordinal=0, says="t is a thread-local variable that is exported"),
    Case(rule="VIS-207", body="@t = internal thread_local global i32 0\n" + _f("store i32 0, ptr @t"), function="f",
         ordinal=0, says="t is a thread-local variable"),
    Case(rule="VIS-208", body=F, exports=("f", "g"), says="g is to be exported, but the module does not define it"),
    Case(rule="VIS-209", body=F + "define void @g() {\n  ret void\n}\n", function="g", says="g is visible"),
    Case(rule="VIS-209", body=F + "@x = global i32 0\n", says="x is visible"),
    Case(rule="VIS-210", body="define ptr @malloc(i64 %n) {\n  ret ptr null\n}\n", exports=("malloc",),
         function="malloc", says="the export malloc is a name of the C library"),
    *(
        Case(rule="VIS-210", body=f"define void @{name}() {{\n  ret void\n}}\n", exports=(name,), function=name,
             says=f"the export {name} is a name of {owner}")
        for name, owner in (("sqrtf", "the C library"), ("main", "the C library or the program"), ("_init", "the start"),
                            ("PyInit_x", "Python"), ("_Z1fv", "C++"), ("__foo", "the C implementation"),
                            ("__vis_x", "visget"), ("pthread_create", "the C library"))
    ),
    Case(rule="VIS-210", body=F + "define internal void @__vis_va_start(ptr %p) {\n  ret void\n}\n",
         function="__vis_va_start", says="defines a name of visget"),
    Case(rule="VIS-211", body="define dso_local void @f() {\n  ret void\n}\n", function="f", says="f is marked dso_local"),
    Case(rule="VIS-211", body=_f("call void @abort()", after="declare dso_local void @abort()"),
         function="f", ordinal=0, says="abort is marked dso_local"),

    Case(rule="VIS-212", body="@t = internal thread_local(initialexec) global i32 0\n" + _f("store i32 0, ptr @t"),
         function="f", ordinal=0, also=("VIS-207",), says="asks for the thread-local model initialexec"),
    Case(rule="VIS-301", body=_f('call void asm sideeffect "syscall", ""()'), function="f", ordinal=0,
         says='inline assembly "syscall"'),
    Case(rule="VIS-301", body=_f("%x = add i32 1, 2", 'call void asm sideeffect "", "{r10}"(i32 %x)'), function="f",
         ordinal=1, says='inline assembly "{r10}"'),
    Case(rule="VIS-302", body=_f('call void asm sideeffect "", "r,~{memory}"(ptr null)'), function="f", ordinal=0,
         says='an empty asm statement ("r,~{memory}")'),
    Case(rule="VIS-303", body=_f("call void @llvm.x86.sse2.pause()", after="declare void @llvm.x86.sse2.pause()"),
         function="f", ordinal=0, says="llvm.x86.sse2.pause exists on one target only"),
    *(
        Case(rule="VIS-304", body=_f(f"%x = call {kind} @{name}({args})", after=f"declare {kind} @{name}({params})"),
             function="f", ordinal=0, says=f"{name} is not in VIS: {why}")
        for name, kind, args, params, why in (
            ("llvm.readcyclecounter", "i64", "", "", "a cycle counter traps"),
            ("llvm.readsteadycounter", "i64", "", "", "a cycle counter traps"),
            ("llvm.matrix.transpose.v4f32", "<4 x float>", "<4 x float> zeroinitializer, i32 2, i32 2",
             "<4 x float>, i32, i32", "its lowering"),
            ("llvm.powi.f64.i32", "double", "double 1.0, i32 3", "double, i32", "it becomes a call of __powidf2"),
            ("llvm.roundeven.f64", "double", "double 1.0", "double", "it becomes a call of roundeven()"),
            ("llvm.get.rounding", "i32", "", "", "it is not in the table of intrinsics"),
        )
    ),
    Case(rule="VIS-305", body=_f("%x = fadd x86_fp80 %a, %a", head="define internal void @g(x86_fp80 %a)") + F,
         function="g", says="x86_fp80 exists on one target"),
    Case(rule="VIS-305", body=_f("%x = load <vscale x 4 x i32>, ptr %p", head=_P), function="f", ordinal=0,
         says="vscale x exists on one"),
    Case(rule="VIS-305", body='define internal void @g(target("aarch64.svcount") %a) {\n  ret void\n}\n' + F,
         function="g", says="target("),
    Case(rule="VIS-306", body=_f("%x = load i32, ptr addrspace(1) null"), function="f", ordinal=0, says="addrspace(1)"),
    Case(rule="VIS-307", body=_f("%x = load i256, ptr %p", "%y = mul i256 %x, %x", head=_P), function="f", ordinal=0,
         says="an integer of 256 bits"),
    Case(rule="VIS-308", body=_f("%x = load <257 x i8>, ptr %p", head=_P), function="f", ordinal=0,
         says="a vector of 2056 bits"),
    Case(rule="VIS-309", body=_f("%x = load [65537 x i8], ptr %p", head=_P), function="f", ordinal=0,
         says="a value of type [65537 x i8]"),
    Case(rule="VIS-309", body="%t = type { [65537 x i8] }\n" + _f("%x = load %t, ptr %p", head=_P), function="f",
         ordinal=0, says="a value of type %t"),
    Case(rule="VIS-310", body=_f("%x = alloca [1048577 x i8]"), function="f", ordinal=0,
         says="a local variable of 1048577 bytes"),
    Case(rule="VIS-310", body=_f("%x = alloca i64, i64 131073"), function="f", ordinal=0,
         says="a local variable of 1048584 bytes"),
    Case(rule="VIS-311", body=_f(*["store volatile i8 0, ptr %p"] * 50_000, head=_P), function="f",
         says="the function has 50001 instructions"),
    Case(rule="VIS-312", body=_f("%x = load atomic i128, ptr %p seq_cst, align 16", head=_P), function="f", ordinal=0,
         says="an atomic load atomic of 16 bytes"),
    Case(rule="VIS-312", body=_f("%x = cmpxchg ptr %p, i128 0, i128 1 seq_cst seq_cst", head=_P), function="f",
         ordinal=0, says="an atomic cmpxchg of 16 bytes"),
    Case(rule="VIS-312", body=_f("%x = load atomic i64, ptr %p seq_cst, align 4", head=_P), function="f", ordinal=0,
         says="with alignment 4"),
    *(
        Case(rule="VIS-313", body=_f(*lines, head=_P), function="f", ordinal=1, says=says,
             also=("VIS-322",) if "load fp128" in lines[0] else ())
        for lines, says in (
            (("%a = load i128, ptr %p", "%b = udiv i128 %a, 7"), "division of 128-bit integers"),
            (("%a = load i128, ptr %p", "%b = srem i128 %a, 7"), "division of 128-bit integers"),
            (("%a = load i128, ptr %p", "%b = sitofp i128 %a to double"), "128-bit integer to floating point"),
            (("%a = load double, ptr %p", "%b = fptoui double %a to i128"), "floating point to 128-bit integer"),
            (("%a = load half, ptr %p", "%b = fadd half %a, %a"), "arithmetic on 16-bit floating point"),
            (("%a = load bfloat, ptr %p", "%b = fpext bfloat %a to float"), "arithmetic on 16-bit floating point"),
            (("%a = load fp128, ptr %p", "%b = fmul fp128 %a, %a"), "arithmetic on long double"),
            (("%a = load double, ptr %p", "%b = fpext double %a to fp128"), "arithmetic on long double"),
        )
    ),
    Case(rule="VIS-313", body=_f("%a = load i128, ptr %p",
         "%b = call { i128, i1 } @llvm.smul.with.overflow.i128(i128 %a, i128 %a)", head=_P,
         after="declare { i128, i1 } @llvm.smul.with.overflow.i128(i128, i128)"), function="f", ordinal=1,
         says="becomes a call into a compiler's run-time library"),
    Case(rule="VIS-314", body=_f("%a = load fp128, ptr %p", "store fp128 %a, ptr %p", head=_P), function="f", ordinal=0,
         also=("VIS-322",),
         says="long double (128 bits) is moved around"),
    Case(rule="VIS-315", body=_f("%a = load fp128, ptr %p", "%b = call fp128 @llvm.sqrt.f128(fp128 %a)", head=_P,
         after="declare fp128 @llvm.sqrt.f128(fp128)"), function="f", ordinal=1, also=("VIS-314", "VIS-322"),
         says="llvm.sqrt.f128 becomes a call of a long double function"),
    Case(rule="VIS-316", body=_f("%a = call ptr @llvm.returnaddress(i32 0)",
         after="declare ptr @llvm.returnaddress(i32)"), function="f", ordinal=0, says="llvm.returnaddress gives"),
    Case(rule="VIS-317", body=_f("%a = call ptr @llvm.frameaddress.p0(i32 1)",
         after="declare ptr @llvm.frameaddress.p0(i32)"), function="f", ordinal=0, says="of a caller"),
    Case(rule="VIS-318", body="declare i32 @__gxx_personality_v0(...)\ndefine internal void @g() {\n  ret void\n}\n"
         "define void @f() personality ptr @__gxx_personality_v0 {\n  invoke void @g() to label %a unwind label %b\n"
         "a:\n  ret void\nb:\n  %x = landingpad { ptr, i32 } cleanup\n  resume { ptr, i32 } %x\n}\n",
         function="f", also=("VIS-504",), says="is __gxx_personality_v0, which the module does not define"),
    Case(rule="VIS-318", body="define internal i32 @other() {\n  ret i32 0\n}\n"
         "define void @f() personality ptr @other {\n  ret void\n}\n", function="f", says="is other, not __gxx"),
    Case(rule="VIS-318", body="define internal i32 @__gxx_personality_v0() {\n  ret i32 0\n}\n"
         "define internal void @g() {\n  ret void\n}\n"
         "define void @f() personality ptr @__gxx_personality_v0 {\n  invoke void @g() to label %a unwind label %b\n"
         "a:\n  ret void\nb:\n  %s = catchswitch within none [label %c] unwind to caller\nc:\n"
         "  %p = catchpad within %s [ptr null, i32 64, ptr null]\n  catchret from %p to label %a\n}\n",
         function="f", ordinal=2, says="catchswitch belongs to one system"),
    Case(rule="VIS-319", body="define fastcc void @f() {\n  ret void\n}\n", function="f",
         says="the calling convention fastcc"),
    Case(rule="VIS-319", body=F + "define internal x86_stdcallcc void @g() {\n  ret void\n}\n", function="g",
         says="the calling convention x86_stdcallcc"),

    Case(rule="VIS-109", body=_f("store i32 0, ptr %p, !pcsections !1", head=_P, after='!1 = !{!"evil"}'), function="f",
         ordinal=0, says="an instruction asks for sections by !pcsections"),
    Case(rule="VIS-320", body=_f('call void @g() [ "deopt"() ]', after="define internal void @g() {\n  ret void\n}"),
         function="f", ordinal=0, says='the operand bundle "deopt"'),
    Case(rule="VIS-321", body=_f("%a = fadd double 1.0, 2.0",
         "%b = call double @llvm.fmuladd.f64(double %a, double %a, double %a)",
         after="declare double @llvm.fmuladd.f64(double, double, double)"), fp_contract="off", function="f", ordinal=1,
         says="'off', but a multiplication and an addition may become one"),
    Case(rule="VIS-321", body=_f("%a = fmul nsz contract float 1.0, 2.0"), fp_contract="off", function="f", ordinal=0,
         says="'off', but a multiplication and an addition may become one"),
    Case(rule="VIS-321", body=_f("%a = fadd reassoc nsz contract <2 x float> zeroinitializer, zeroinitializer"),
         fp_contract="on", function="f", ordinal=0, says="'on', but an operation is marked reassoc"),
    Case(rule="VIS-322", body="@x = constant [2 x fp128] zeroinitializer\n" + F, exports=("f", "x"),
         says="x is exported and holds a long double"),
    Case(rule="VIS-322", body="@x = internal constant [2 x fp128] [fp128 0xL00000000000000000000000000000000, "
         "fp128 0xL00000000000000004000000000000000]\ndefine ptr @f() {\n  ret ptr @x\n}\n", function="f", ordinal=0,
         says="a pointer to a long double is returned"),
    Case(rule="VIS-322", body=_f("store fp128 0xL00000000000000003FFF000000000000, ptr %p", head=_P), function="f",
         ordinal=0, also=("VIS-314",), says="where a caller's pointer leads"),
    Case(rule="VIS-322", body=_f("%a = alloca ptr", "store ptr %0, ptr %a", "%b = load ptr, ptr %a, align 8",
         "%c = getelementptr inbounds [2 x fp128], ptr %b, i64 1", "%d = load fp128, ptr %c, align 16",
         "store fp128 %d, ptr %e, align 16", head="define void @f(ptr noundef %0, i32 signext %1)").replace(
         "%a = alloca ptr", "%e = alloca fp128\n  %a = alloca ptr"), function="f", ordinal=5, also=("VIS-314",),
         says="where a caller's pointer leads"),
    Case(rule="VIS-323", body=_f("%r = call signext i32 @_setjmp(ptr %p)", head=_P,
         after="declare signext i32 @_setjmp(ptr)"), function="f", ordinal=0, says="without the attribute returns_twice"),
    Case(rule="VIS-323", body=_f("store ptr @_setjmp, ptr %p", head=_P,
         after="declare signext i32 @_setjmp(ptr) returns_twice"), function="f", ordinal=0, says="other than by calling it"),
    Case(rule="VIS-323", body=_f("%r = call signext i32 @_setjmp(ptr @_setjmp)",
         after="declare signext i32 @_setjmp(ptr) returns_twice"), function="f", ordinal=0, says="other than by calling it"),
    Case(rule="VIS-323", body="@x = internal global ptr @_setjmp\n" + _f("store ptr null, ptr @x",
         after="declare signext i32 @_setjmp(ptr) returns_twice"), function="f", ordinal=0, says="holds the address of _setjmp"),
    Case(rule="VIS-324", body=_f("call void @longjmp(ptr %p, i32 signext 1)", head=_P,
         after="declare void @longjmp(ptr, i32 signext)"), function="f", ordinal=0, says="longjmp leaves functions"),
    Case(rule="VIS-401", body="define void @f(ptr %p, ...) {\n  ret void\n}\n", function="f",
         says="takes a variable number of arguments"),
    *(
        Case(rule="VIS-402", body=before + f"define {result} @f({parameters}) {{\n  {end}\n}}\n", function="f", says=says)
        for before, result, parameters, end, says in (
            ("", "void", "ptr dead_on_return noundef %a", "ret void", "parameter 1 is a struct by value of more than 16"),
            ("%t = type { i64, i64, i64 }\n", "void", "ptr byval(%t) %a", "ret void", "parameter 1 is a struct by value"),
            ("", "void", "float %a, float %b", "ret void", "parameters 1 and 2 seem to be one struct (float, float)"),
            ("", "void", "i64 noundef %x, i64 %a, double %b", "ret void", "parameters 2 and 3 seem to be one struct"),
            ("", "{ float, float }", "", "ret { float, float } zeroinitializer", "the result is a struct by value"),
            ("", "{ i64, double }", "", "ret { i64, double } zeroinitializer", "the result is a struct by value"),
            ("%v = type { double, double, double }\n", "void", "ptr sret(%v) %r", "ret void", "AArch64 returns"),
            ("%v = type { [3 x double] }\n", "void", "ptr sret(%v) %r", "ret void", "AArch64 returns"),
            ("", "void", "{ i64, i64 } %a", "ret void", "parameter 1 is a struct by value ({ i64, i64 })"),
            ("", "void", "ptr inreg noundef %a", "ret void", "parameter 1 is passed in a register of its own"),
        )
    ),
    Case(rule="VIS-403", body="define void @f(ptr noundef %x, [2 x i64] %a) {\n  ret void\n}\n", function="f",
         says="parameter 2 is a struct of two words"),
    Case(rule="VIS-403", body="define [2 x i64] @f() {\n  ret [2 x i64] zeroinitializer\n}\n", function="f",
         says="the result is a struct of two words"),
    *(
        Case(rule="VIS-404", body=f"define void @f({kind} noundef %a) {{\n  ret void\n}}\n", function="f",
             says=f"parameter 1 has the type {kind}")
        for kind in ("i128", "fp128", "half", "<4 x i32>")
    ),
    Case(rule="VIS-404", body="define fp128 @f() {\n  ret fp128 0xL00000000000000000000000000000000\n}\n", function="f",
         also=("VIS-314",), says="the result has the type fp128"),
    Case(rule="VIS-406", body=_f("call void %g(ptr dead_on_return noundef %g)", head="define void @f(ptr noundef %g)"),
         function="f", ordinal=0, says="through a function pointer"),
    Case(rule="VIS-407", body="define i32 @f() {\n  ret i32 0\n}\n", function="f", says="the result (i32)"),
    Case(rule="VIS-407", body="define void @f(i8 noundef %a) {\n  ret void\n}\n", function="f", says="parameter 1 (i8)"),
    Case(rule="VIS-407", body=_f("call void @srand(i32 1)", after="declare void @srand(i32)"),
         says="parameter 1 (i32) of the imported function srand"),

    Case(rule="VIS-501", body=_f("%x = call ptr @frobnicate(i32 1)", after="declare ptr @frobnicate(i32 signext)"),
         function="f", ordinal=0, says="frobnicate is neither defined here nor in the table"),
    Case(rule="VIS-501", body="@table = external global i32\n" + _f("store i32 1, ptr @table"), function="f", ordinal=0,
         says="table is neither defined here nor in the table"),
    Case(rule="VIS-503", body=_f("%x = call signext i32 @strlen(ptr null)", after="declare signext i32 @strlen(ptr)"),
         function="f", ordinal=0, says="strlen is declared as i32 (ptr), but is i64 (ptr)"),
    Case(rule="VIS-503", body=_f("%x = call signext i32 @puts(ptr null, ptr null)", after="declare signext i32 @puts(ptr)"),
         function="f", ordinal=0, says="puts is called with other types"),
    Case(rule="VIS-503", body=_f("%x = call signext i32 @printf(ptr null)",
         after="declare signext i32 @printf(ptr, ...)"), function="f", ordinal=0, says="printf is called with other"),
    Case(rule="VIS-503", body="@stderr = external global [3 x ptr]\n" + _f("store ptr null, ptr @stderr"),
         function="f", ordinal=0, says="stderr is declared as [3 x ptr], but is ptr"),
    *(
        Case(rule="VIS-504", body=_f(f"call void @{name}()", after=f"declare void @{name}()"), function="f", ordinal=0,
             says=f"{name} {why}")
        for name, why in (
            ("_ZNSt3__112basic_stringIcE6resizeEv", "is a template or function that libc++"),
            ("_Znwm", "is operator new, which"), ("_ZdlPv", "is operator delete, which"),
            ("__cxa_pure_virtual", "belongs to the C++ run-time"), ("__cxa_guard_acquire", "belongs to the C++ run-time"),
            ("_Unwind_SetFoo", "belongs to exception handling"), ("_Z3foov", "is a C++ function that no source"),
        )
    ),
    Case(rule="VIS-505", body=_f("call void @__builtin_foo()", after="declare void @__builtin_foo()"), function="f",
         ordinal=0, says="__builtin_foo is a compiler builtin"),
    Case(rule="VIS-506", body=_f("%a = load fp128, ptr %p",
         "%r = call signext i32 (ptr, ...) @printf(ptr %p, fp128 %a)", head=_P,
         after="declare signext i32 @printf(ptr, ...)"), function="f", ordinal=1, also=("VIS-314", "VIS-322"),
         says="a long double is passed to printf"),
    Case(rule="VIS-506", body=_f("%a = load fp128, ptr %p", "call void (ptr, ...) @g(ptr %p, i32 1, fp128 %a)", head=_P,
         after="define internal void @g(ptr %p, ...) {\n  ret void\n}"), function="f", ordinal=1, also=("VIS-314", "VIS-322"),
         says="a long double is passed as a variable argument"),
    Case(rule="VIS-506", body=_f("call void (...) %p(fp128 0xL00000000000000000000000000000000)", head=_P), function="f",
         ordinal=0, also=("VIS-314",), says="a long double is passed as a variable argument"),
    Case(rule="VIS-507", body=_f("%a = alloca ptr", "call void @llvm.va_start.p0(ptr %a)",
         head="define internal void @g(ptr %p, ...)", after="declare void @llvm.va_start.p0(ptr)") + F, function="g",
         ordinal=1, says="llvm.va_start.p0 writes a va_list of the neutral machine"),
    Case(rule="VIS-507", body=_f("%a = va_arg ptr %p, i32", head=_P), function="f", ordinal=0,
         says="the instruction va_arg"),
    Case(rule="VIS-508", body="%struct.__vis_va_tag = type { [4 x i64] }\n" + _f(
         "%a = alloca [1 x %struct.__vis_va_tag]", "call void @__vis_va_start(ptr %a)",
         "call void %p(ptr noundef %a)", head="define internal void @g(ptr %p, ...)",
         after="declare void @__vis_va_start(ptr)") + F, function="g", ordinal=2,
         says="a va_list is passed to a function pointer"),
    Case(rule="VIS-509", body=_f("call void @__vis_launch(ptr null)", after="declare void @__vis_launch(ptr)"),
         function="f", ordinal=0, says="__vis_launch is not a built-in"),
    Case(rule="VIS-509", body=_f("call void @__vis_va_end(i64 1)", after="declare void @__vis_va_end(i64)"),
         function="f", ordinal=0, says="__vis_va_end is declared as void (i64), but is void (ptr)"),
    Case(rule="VIS-510", body=_f("call void @abort()", after="declare void @abort()"), imports=("free",), function="f",
         ordinal=0, says="the module needs abort, which its manifest does not name"),
    Case(rule="VIS-510", body=F, imports=("free",), says="the manifest names the import free"),
    Case(rule="VIS-511", body=_f("%x = call double @pow(double 2.0, double 3.0)", "%e = call ptr @__errno_location()",
         after="declare double @pow(double, double)\ndeclare ptr @__errno_location()"), function="f", ordinal=1,
         says="errno is read in a function that calls pow"),
    Case(rule="VIS-511", body=_f("call void @g()", "%e = call ptr @__errno_location()", after="define internal void @g() {\n"
         "  %x = call double @pow(double 2.0, double 3.0)\n  ret void\n}\ndeclare double @pow(double, double)\n"
         "declare ptr @__errno_location()"), function="f", ordinal=1, says="errno is read in a function that calls pow"),
    Case(rule="VIS-512", body=_f("%x = call signext i32 @fork()", after="declare signext i32 @fork()"), function="f",
         ordinal=0, says="fork is for programs"),
    Case(rule="VIS-512", body="@environ = external global ptr\n" + _f("store ptr null, ptr @environ"), function="f",
         ordinal=0, says="environ is for programs"),
    Case(rule="VIS-513", body=_f("%x = call signext i32 @setenv(ptr %p, ptr %p, i32 signext 1)", head=_P,
         after="declare signext i32 @setenv(ptr, ptr, i32 signext)"), function="f", ordinal=0,
         says="setenv changes something"),

    Case(rule="VIS-601", body=_attribute("noinline optnone"), function="f", says="marked optnone"),
    Case(rule="VIS-602", body=_LOOP.format(more="ret void", mark='!"llvm.loop.unroll.disable"'), function="f", ordinal=2,
         says="1 of 1 loops are marked llvm.loop.unroll.disable"),
    Case(rule="VIS-602", body=_LOOP.format(more="ret void", mark='!"llvm.loop.vectorize.enable", i1 false'),
         function="f", ordinal=2, says="1 of 1 loops are marked llvm.loop.vectorize.enable"),
    Case(rule="VIS-603", body=_LOOP.format(more="br i1 %v, label %a, label %c, !llvm.loop !3\nc:\n  ret void",
         mark='!"llvm.loop.unroll.disable"') + '!3 = distinct !{!3, !4}\n!4 = !{!"llvm.loop.mustprogress"}\n',
         function="f", ordinal=2, says="a loop is marked llvm.loop.unroll.disable"),
    Case(rule="VIS-604", body=_LOOP.format(more="ret void", mark='!"llvm.loop.isvectorized", i32 1'), function="f",
         ordinal=2, says="vectorised for the neutral machine"),
)  # fmt: skip
