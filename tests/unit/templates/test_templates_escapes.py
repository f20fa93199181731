"""Known ways out of Jinja's sandbox: each is refused or gives nothing."""

from typing import Any

import pytest

from noetl.templates.errors import TemplateError
from noetl.templates.render import Rendered, render


class Canary:
    """Something that must not be in the bindings, but shows that nothing is reachable."""

    secret = "found"

    def touch(self) -> str:
        return "found"


BINDINGS: dict[str, Any] = {
    "text": "x",
    "list": [1],
    "map": {"a": 1},
    "number": 1,
    "canary": Canary(),
    "function": Canary.touch,
    "type": Canary,
}

ESCAPES = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ map['__class__'] }}",
    "{{ map | attr('__class__') }}",
    "{{ [text] | map(attribute='__class__') | list }}",
    "{{ [canary] | map(attribute='secret') | list }}",
    "{{ [canary] | selectattr('secret') | list }}",
    "{{ [canary] | sort(attribute='secret') }}",
    "{{ [canary] | groupby('secret') }}",
    "{{ [canary] | sum(attribute='secret') }}",
    "{{ [canary] | join(attribute='secret') }}",
    "{{ canary.secret }}",
    "{{ canary['secret'] }}",
    "{{ canary.touch() }}",
    "{{ function() }}",
    "{{ type() }}",
    "{{ [function][0](1) }}",
    "{{ canary ~ '' }}",
    "x{{ canary }}",
    "x{{ type }}",
    "{{ [canary] }}",
    "{{ canary | string }}",
    "{{ canary | tojson }}",
    "{{ '%s' % canary }}",
    "{{ '%r' % (canary,) }}",
    "{{ '{0.secret}'.format(canary) }}",
    "{{ '{0.__class__}'.format(text) }}",
    "{{ '{a.secret}'.format_map({'a': canary}) }}",
    "{{ '{0.__class__}' | format(text) }}",
    "{{ list.append(2) }}",
    "{{ list.pop() }}",
    "{{ list.clear() }}",
    "{{ list.sort() }}",
    "{{ map.update({'b': 1}) }}",
    "{{ map.pop('a') }}",
    "{{ map.setdefault('b', 1) }}",
    "{{ map.__setitem__('a', 2) }}",
    "{{ text.encode() }}",
    "{{ text.translate({120: 'y' }) }}",
    "{{ text.expandtabs(10**9) }}",
    "{{ self._TemplateReference__context }}",
    "{{ self.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ lipsum.__globals__ }}",
    "{{ lipsum() }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ namespace(a=1).__class__ }}",
    "{{ namespace(a=1)._Namespace__attrs }}",
    "{{ namespace(a=1)['__class__'] }}",
    "{{ range.__class__ }}",
    "{{ range(3).__class__ }}",
    "{{ dict.__base__ }}",
    "{{ (list | map('string')).gi_frame }}",
    "{{ (list | map('string')).gi_code }}",
    "{% for x in list %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in list %}{{ loop._iterator }}{% endfor %}",
    "{% for x in list %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "{% for x in list %}{{ loop }}{% endfor %}",
    "{% for x in list %}{{ loop(list) }}{% endfor %}",
    "{% set x = list.append %}{{ x(1) }}",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
    "{% set list.x = 1 %}",
    "{{ request.application.__globals__ }}",
    "{{ config.items() }}",
    "{{ get_flashed_messages.__globals__ }}",
    "{{ url_for.__globals__ }}",
    "{{ environment }}",
    "{{ context }}",
    "{{ caller() }}",
    "{{ super() }}",
    "{{ varargs }}",
    "{{ missing.__class__ }}",
    "{{ missing._undefined_exception }}",
    "{{ missing._fail_with_undefined_error() }}",
    "{{ text | call:now }}",
    "{{ 0 | method:upper }}",
    "{{ text | e }}",
    "{{ list | pprint }}",
    "{{ text | xmlattr }}",
    "{{ text | map('jinja:sort') }}",
    "{{ [text] | map('attr', '__class__') | list }}",
    "{{ [text] | map('compare:eq', 'x') | list }}",
    "{{ [function] | map('call:now') | list }}",
    "{% filter upper %}x{% endfilter %}",
    "{% autoescape true %}{% endautoescape %}",
    "{% do list.append(1) %}",
    "{% call x() %}{% endcall %}",
    "{% from 'os' import system %}",
    "{% import 'os' as os %}{{ os.system('id') }}",
    "{% macro x() %}{{ x() }}{% endmacro %}{{ x() }}",
    "{{ import('os') }}",
    "{{ eval('1') }}",
    "{{ open('x') }}",
    "{{ __import__('os') }}",
    "{{ __builtins__ }}",
    "{{ l_0_x }}{{ resolve }}{{ undefined }}{{ t_1 }}",
]


HARMLESS: tuple[Any, ...] = (None, "", [], "x", [None])


def outcome_of(template: str) -> Any:
    try:
        outcome = render(template, BINDINGS)
    except TemplateError as error:
        return error
    assert isinstance(outcome, Rendered)
    return outcome.value


@pytest.mark.parametrize("template", ESCAPES)
def test_no_escape_finds_anything(template: str) -> None:
    before = repr({key: BINDINGS[key] for key in ("list", "map")})
    found = outcome_of(template)
    assert found in HARMLESS or (isinstance(found, TemplateError) and "found" not in str(found))
    assert "object at 0x" not in str(found)
    assert repr({key: BINDINGS[key] for key in ("list", "map")}) == before
