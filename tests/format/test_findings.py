from visget.format.findings import Finding, errors, in_order


def finding(**changes):
    values = {"rule": "VIS-014", "severity": "error", "message": "inline assembly", "remedy": "write it in C\nplease"}
    return Finding(**(values | changes))


def test_render_in_the_shape_of_compilers():
    full = finding(file="src/a.c", line=12, function="f")
    assert full.render() == "src/a.c:12: error[VIS-014] in f(): inline assembly\n  write it in C\n  please"
    assert finding(file="a.c").render().startswith("a.c: error[VIS-014]: inline")
    assert finding(severity="warning").render().startswith("warning[VIS-014]: inline")


def test_order_and_no_repetition():
    a = finding(file="a.c", line=9)
    b = finding(file="a.c", line=10)
    c = finding(file="b.c", line=1, severity="warning")
    assert in_order([c, b, a, b]) == [a, b, c]
    assert errors([a, c]) == [a]


def test_as_dict_is_complete():
    assert set(finding().as_dict()) == set(Finding.__slots__)
