import pytest

from visget.config import Settings, color_wish, read_settings, remember_registry
from visget.errors import UsageError


def write(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    return {"VISGET_CONFIG_DIR": str(tmp_path), "VISGET_HOME": str(tmp_path / "home")}


def test_option_beats_environment_beats_file_beats_default(tmp_path):
    env = write(tmp_path, 'jobs = 3\ntarget = "baseline"\n')
    assert read_settings(env).jobs == 3
    assert read_settings(env | {"VISGET_JOBS": "5"}).jobs == 5
    assert read_settings(env | {"VISGET_JOBS": "5"}, jobs=7).jobs == 7
    assert read_settings(env).target == "baseline"
    assert read_settings({"VISGET_CONFIG_DIR": str(tmp_path / "none")}).target is None


def test_unknown_key_names_file_and_guess(tmp_path):
    with pytest.raises(UsageError) as caught:
        read_settings(write(tmp_path, "job = 3\n"))
    assert "config.toml" in caught.value.where
    assert "'jobs'" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["jobs = 0", 'jobs = "many"', "target = 3", 'offline = "perhaps"', "registries = 3", "x =", 'sandbox = "on"'],
)
def test_bad_files(tmp_path, text):
    with pytest.raises(UsageError):
        read_settings(write(tmp_path, text))


def test_row_40_the_trust_policy_is_tofu_or_pinned(tmp_path):
    assert read_settings(write(tmp_path, "")).trust_policy == "tofu"
    assert read_settings(write(tmp_path, 'trust-policy = "pinned"\n')).trust_policy == "pinned"
    assert read_settings(write(tmp_path, "") | {"VISGET_TRUST_POLICY": "pinned"}).trust_policy == "pinned"
    with pytest.raises(UsageError, match="trust-policy must be tofu or pinned"):
        read_settings(write(tmp_path, 'trust-policy = "always"\n'))


def test_the_sandbox_is_required_automatic_or_off(tmp_path):
    assert read_settings(write(tmp_path, "")).sandbox == "auto"
    assert read_settings(write(tmp_path, 'sandbox = "require"\n')).sandbox == "require"
    assert read_settings(write(tmp_path, "") | {"VISGET_SANDBOX": "off"}).sandbox == "off"


def test_bad_environment_names_the_variable(tmp_path):
    with pytest.raises(UsageError) as caught:
        read_settings(write(tmp_path, "") | {"VISGET_JOBS": "many"})
    assert caught.value.where == "VISGET_JOBS"


def test_customary_variables(tmp_path):
    env = write(tmp_path, "") | {"SSL_CERT_FILE": "/ca.pem", "HTTPS_PROXY": "http://p:3128"}
    assert read_settings(env).ca_bundle == "/ca.pem"
    assert read_settings(env).proxy == "http://p:3128"
    assert read_settings(env | {"VISGET_CA_BUNDLE": "/own.pem"}).ca_bundle == "/own.pem"


def test_registry_by_name_path_url_and_guess(tmp_path):
    settings = Settings(home=tmp_path, cache=tmp_path, config=tmp_path, registries={"team": "/srv/p", "other": "x"})
    assert settings.location("team") == "/srv/p"
    assert settings.location("https://e.example/r") == "https://e.example/r"
    assert settings.location("./here") == "./here"
    with pytest.raises(UsageError, match="several registries"):
        settings.location()
    with pytest.raises(UsageError) as caught:
        settings.location("tema")
    assert "'team'" in caught.value.hint


def test_the_only_registry_is_the_default(tmp_path):
    settings = Settings(home=tmp_path, cache=tmp_path, config=tmp_path, registries={"team": "/srv/p"})
    assert settings.location() == "/srv/p"
    with pytest.raises(UsageError, match="no registry"):
        Settings(home=tmp_path, cache=tmp_path, config=tmp_path).location()


def test_remember_registry_keeps_the_file(tmp_path):
    env = write(tmp_path, '# mine\njobs = 2\n')
    assert remember_registry(read_settings(env), "a", '/odd "path"')
    assert remember_registry(read_settings(env), "b", "/b")
    assert not remember_registry(read_settings(env), "b", "/c")
    settings = read_settings(env)
    assert settings.registries == {"a": '/odd "path"', "b": "/b"}
    assert settings.jobs == 2
    assert (tmp_path / "config.toml").read_text().startswith("# mine\n")


@pytest.mark.parametrize(
    ("env", "wish"),
    [({}, None), ({"NO_COLOR": "1"}, False), ({"FORCE_COLOR": "1"}, True), ({"TERM": "dumb"}, False),
     ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False), ({"NO_COLOR": ""}, None)],
)  # fmt: skip
def test_colour_wish(env, wish):
    assert color_wish(env) is wish
