"""Errors name the template, the place, what is wrong and what to do."""

import pytest

from noetl.kernel.errors import NoETLError
from noetl.templates.errors import (
    Need,
    NeedsPayload,
    TemplateError,
    TemplateFailed,
    TemplateInvalid,
    TemplateRefused,
    TemplateTooLarge,
)
from tests.unit.templates.rendered import rendered


@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        ("{{ a + }}", TemplateInvalid, "line 1, `{{ a . }}`: unexpected .*check the brackets"),
        ("{{ a", TemplateInvalid, "check the brackets and quotes"),
        ("{{ a | lenght }}", TemplateInvalid, "no filter called 'lenght'; did you mean length"),
        ("{{ a is defind }}", TemplateInvalid, "no test called 'defind'; did you mean defined"),
        ("{{ nwo() }}", TemplateInvalid, "no function called 'nwo'; did you mean now"),
        ("{{ a.uper() }}", TemplateInvalid, "no method called 'uper'; did you mean upper"),
        ("{{ a | d(x=1, x=2) }}", TemplateInvalid, "cannot be compiled"),
        ("{{ 1 | default(" + "9" * 5_000 + ") }}", TemplateInvalid, "cannot be compiled"),
        ("{{ a[0]() }}", TemplateRefused, "only functions, methods and filters can be called"),
        ("{% macro m() %}{% endmacro %}", TemplateRefused, "{% macro %} is not available"),
        ("{% include 'x' %}", TemplateRefused, "include"),
        ("{% import 'x' as y %}", TemplateRefused, "import"),
        ("{% extends 'x' %}", TemplateRefused, "extends"),
        ("{% block x %}{% endblock %}", TemplateRefused, "block"),
        ("{% set x %}y{% endset %}", TemplateRefused, "set … endset"),
        ("{% for x in y recursive %}{% endfor %}", TemplateRefused, "recursive"),
        ("{{ ''.__class__ }}", TemplateRefused, "__class__ is not data"),
        ("{{ missing['__init__'] }}", TemplateRefused, "__init__ is not data"),
        ("{{ " + "(" * 21 + "1" + ")" * 21 + " }}", TemplateTooLarge, "BRACKET_DEPTH_MAX = 20"),
        ("{{ 1" + " + 1" * 100 + " }}", TemplateTooLarge, "deeper than EXPRESSION_DEPTH_MAX = 60"),
        ("{% if 1 %}" * 13 + "{% endif %}" * 13, TemplateTooLarge, "STATEMENT_DEPTH_MAX = 12"),
        ("{{ now() }}", TemplateRefused, "time, which is not offered"),
        ("{{ random() }}", TemplateRefused, "chance, which is not offered"),
    ],
)
def test_it_says_what_is_wrong_and_what_to_do(
    template: str, error: type[TemplateError], message: str
) -> None:
    with pytest.raises(error, match=message):
        rendered(template)


def test_the_line_is_the_templates_own() -> None:
    source = "SELECT 1;\nSELECT 2;\nSELECT {{ 1 / zero }} FROM t;\n"

    with pytest.raises(TemplateFailed) as raised:
        rendered(source, {"zero": 0})

    assert raised.value.line == 3
    assert raised.value.template == "SELECT {{ 1 / zero }} FROM t;"


def test_the_path_says_which_template_of_a_value() -> None:
    with pytest.raises(TemplateError, match=r"in headers\.list\[1\], line 1") as raised:
        rendered({"headers": {"list": ["ok", "{{ 1 / 0 }}"]}})

    assert raised.value.path == ("headers", "list", 1)


def test_long_templates_are_shortened() -> None:
    with pytest.raises(TemplateError) as raised:
        rendered("{{ 1 / 0 }}" + "x" * 10_000)

    assert len(str(raised.value)) < 200
    assert "…" in str(raised.value)


def test_nothing_of_jinja_hangs_on_the_error() -> None:
    with pytest.raises(TemplateFailed) as raised:
        rendered("{{ missing + 1 }}")

    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_the_family_has_codes_of_its_own() -> None:
    family = {TemplateError, TemplateInvalid, TemplateRefused, TemplateTooLarge, TemplateFailed}

    assert all(issubclass(cls, NoETLError) for cls in family)
    assert len({cls.code for cls in family}) == len(family)
    assert str(NeedsPayload(Need("noetl://x", ("rows", 3)))) == "noetl://x is needed at rows[3]"
