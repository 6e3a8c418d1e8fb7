"""What a release promises: defaults of every version, golden files, and checks that fail when something is missing."""

import inspect
import json

import pytest

import recipe
import release
import scboost
from scboost import SCBoostClassifier, SCBoostRegressor, defaults


@pytest.mark.parametrize("cls", [SCBoostClassifier, SCBoostRegressor])
@pytest.mark.parametrize("version", defaults.versions())
def test_defaults_of_every_version_are_parameters_that_this_version_takes(version, cls):
    given = defaults.parameters(version, cls)
    model = cls(**given)
    model.__check_parameters__()
    assert {name: model.get_params(deep=False)[name] for name in given} == given
    assert defaults.parameters(version, cls.__name__) == given


def test_the_defaults_of_a_released_version_are_those_of_its_sources():
    if "dev" in scboost.__version__ or "rc" in scboost.__version__:
        pytest.skip("the defaults of the next version are frozen when it is released")
    for cls in (SCBoostClassifier, SCBoostRegressor):
        now = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
        assert defaults.parameters(release.minor(scboost.__version__), cls) == now


def test_changing_the_answer_does_not_change_the_frozen_defaults():
    defaults.parameters("0.2", SCBoostClassifier)["n_estimators"] = 3
    assert defaults.parameters("0.2", SCBoostClassifier)["n_estimators"] == "auto"


def test_unknown_versions_and_estimators_are_named():
    with pytest.raises(ValueError, match=r"version must be one of \['0.2'.*got '9.9'"):
        defaults.parameters("9.9", SCBoostClassifier)
    with pytest.raises(ValueError, match=r"estimator must be one of \['SCBoostClassifier'.*got 'dict'"):
        defaults.parameters("0.2", dict)


def test_every_version_with_defaults_has_golden_files():
    for version in defaults.versions():
        expected = json.loads((release.GOLDEN / f"release-{version}.json").read_text())
        assert all((release.GOLDEN / f"release-{version}-{name}").is_file() for name in expected)


def test_golden_files_grown_by_xgboost_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("xgboost")
    model = SCBoostRegressor(n_estimators=2, engine="xgboost").fit([[0.0], [1.0]] * 20, [0.0, 1.0] * 20)
    model.save_model(tmp_path / "release-9.9-one.json")
    (tmp_path / "release-9.9.json").write_text('{"one.json": {}}')
    monkeypatch.setattr(release, "GOLDEN", tmp_path)
    with pytest.raises(SystemExit, match=r"release-9.9-one.json has trees of engine 'xgboost' instead of 'native'"):
        release.check_golden("release-9.9")
    with pytest.raises(SystemExit, match="golden files of this release are missing"):
        release.check_golden("release-9.8")


def test_versions_agree_and_the_changelog_has_a_section():
    assert scboost.__version__ in release.check_versions()


@pytest.mark.parametrize(
    ("text", "message"),
    [("# Changelog\n\n## 0.0.1\n", "has no section"), ("## {version} (unreleased)\n", "date of the release")],
)
def test_a_release_without_its_changelog_is_refused(text, message, tmp_path, monkeypatch):
    for path, pattern in release.VERSION_FILES.items():
        copy = tmp_path / path.relative_to(release.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(release.re.sub(pattern, r"\g<1>0.2.0\g<2>", path.read_text()))
    files = {tmp_path / path.relative_to(release.ROOT): pattern for path, pattern in release.VERSION_FILES.items()}
    monkeypatch.setattr(release, "VERSION_FILES", files)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text(text.format(version="0.2.0"))
    with pytest.raises(SystemExit, match=message):
        release.check_versions()


def test_licences_come_from_expressions_names_and_identifiers():
    component = {"licenses": [{"expression": "MIT OR Apache-2.0"}, {"license": {"id": "MIT"}}]}
    assert release.licence(component) == "MIT OR Apache-2.0 AND MIT"
    assert release.licence({"licenses": [{"license": {"name": "BSD\nlong text"}}]}) == "BSD"
    assert release.licence({}) == "unknown"


WORKFLOWS = sorted((release.ROOT / ".github").rglob("*.yml"))


@pytest.mark.skipif(not WORKFLOWS, reason="the sdist has no hosted workflows")
def test_hosted_workflows_and_templates_are_valid_and_call_commands_that_exist():
    yaml = pytest.importorskip("yaml")
    targets = set(release.re.findall(r"^([\w-]+):", (release.ROOT / "Makefile").read_text(), release.re.MULTILINE))
    for path in WORKFLOWS:
        content = yaml.safe_load(path.read_text())
        for job in content.get("jobs", {}).values():
            used = [job.get("uses", ""), *(step.get("run", "") for step in job.get("steps", []))]
            if used[0].startswith("./"):
                assert (release.ROOT / used[0]).is_file(), path
            for text in used:
                assert set(release.re.findall(r"^make ([\w-]+)", text, release.re.MULTILINE)) <= targets, path
        if "jobs" in content:
            assert content["permissions"] == {"contents": "read"}, path


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    yaml = pytest.importorskip("yaml")
    tomllib = pytest.importorskip("tomllib")
    given = yaml.safe_load((release.ROOT / "recipe" / "recipe.yaml").read_text())
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text())["project"]
    needed = {requirement.replace(" ", "") for requirement in given["requirements"]["run"]} - {"python"}
    assert needed == {requirement.replace(" ", "") for requirement in project["dependencies"]}
    assert given["about"]["license"] == project["license"]


MISTAKES = {
    "unknown field": ("  summary:", "  sumary:"),
    "licence": ("license: BSD-3-Clause", "license: BSD3"),
    "version range": ("numpy >=1.26", "numpy >=>1.26"),
    "undefined variable": ("version: ${{ version }}", "version: ${{ versoin }}"),
    "hash": ("sha256: 0", "sha256: z"),
    "unknown function": ('compiler("cxx")', 'compilr("cxx")'),
    "other version": ('version: "0.2.0"', 'version: "0.1.9"'),
}


def test_rattler_build_reads_the_conda_recipe():
    pytest.importorskip("rattler_build", reason="make release-check installs it")
    assert "5 platforms, 5 Pythons" in recipe.check()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_conda_recipe_are_found(mistake, tmp_path):
    pytest.importorskip("rattler_build", reason="make release-check installs it")
    right, wrong = MISTAKES[mistake]
    text = recipe.RECIPE.read_text()
    assert right in text
    (tmp_path / "recipe.yaml").write_text(text.replace(right, wrong, 1))
    with pytest.raises(SystemExit, match=r"recipe\.yaml"):
        recipe.check(tmp_path / "recipe.yaml")
