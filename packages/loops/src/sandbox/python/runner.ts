/** The Python side: runs a program, serves calls of its functions, or runs tests whose calls go to another process. */

/**
 * Values as text, in both directions; `keep` makes a handle of what has no form as a value, or is None where that is refused.
 * Only exact builtin types come out of `decode`, so nothing that crossed brings its own `__eq__`.
 */
const values = `
import ast, atexit, builtins, itertools, json, linecache, sys, traceback, types

def encode(value, keep=None, depth=0):
    if depth > 150:
        raise ValueError('more than 150 levels, or a cycle')
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        number = int(value)
        return number if -2**53 < number < 2**53 else {'int': str(number)}
    if isinstance(value, float):
        number = float(value)
        if number != number: return {'float': 'nan'}
        if number in (float('inf'), float('-inf')): return {'float': 'inf' if number > 0 else '-inf'}
        return number
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return {'bytes': bytes(value).hex()}
    below = lambda items: [encode(item, keep, depth + 1) for item in items]
    if isinstance(value, list):
        return below(value)
    if isinstance(value, tuple):
        return {'tuple': below(value)}
    if isinstance(value, (set, frozenset)):
        return {'set': below(value)}
    if isinstance(value, dict):
        return {'dict': [below(pair) for pair in value.items()]}
    if keep is None:
        raise TypeError('a ' + type(value).__name__ + ' can not be returned as a value')
    return {'object': keep(value)}

def decode(value, handle=None):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [decode(item, handle) for item in value]
    (tag, content), = value.items()
    if tag == 'int': return int(content)
    if tag == 'float': return float(content)
    if tag == 'bytes': return bytes.fromhex(content)
    if tag == 'tuple': return tuple([decode(item, handle) for item in content])
    if tag == 'set': return {decode(item, handle) for item in content}
    if tag == 'dict': return {decode(key, handle): decode(item, handle) for key, item in content}
    if tag == 'object' and handle is not None: return handle(content)
    raise ValueError('no value')

def described(error):
    try: message = str(error)
    except BaseException: message = ''
    # surrogates have no UTF-8 form
    return {'type': type(error).__name__, 'message': message[:2000].encode('utf-8', 'replace').decode()}

def failure(error):
    status = 'out_of_memory' if isinstance(error, MemoryError) else 'error'
    return {'type': 'done', 'status': status, 'error': described(error)}
`;

const programs = `
def start(task):
    """Runs the source as __main__; returns its scope and, where it failed, how."""
    module = types.ModuleType('__main__')
    sys.modules['__main__'] = module
    sys.argv = ['program.py']
    source = task['code']
    linecache.cache['program.py'] = (len(source), None, source.splitlines(True), 'program.py')
    try:
        exec(compile(source, 'program.py', 'exec'), module.__dict__)
        return module.__dict__, None
    except SystemExit as ended:
        code = ended.code
        if code is None or (isinstance(code, int) and code == 0):
            return module.__dict__, None
        if not isinstance(code, int):
            print(code, file=sys.stderr)
        return None, {'type': 'done', 'status': 'error', 'error': {'type': 'SystemExit', 'message': 'exit code ' + (str(code) if isinstance(code, int) else '1')}}
    except BaseException as error:
        told = failure(error)
        try:
            # without the frame of this function
            traceback.print_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        except BaseException: pass
        return None, told

def finish():
    for step in (atexit._run_exitfuncs, lambda: sys.stdout.flush(), lambda: sys.stderr.flush()):
        try: step()
        except BaseException: pass

def run(task, read, write):
    scope, failed = start(task)
    for call in task['calls'] if failed is None else ():
        try:
            function = scope[call['entry']] if call['entry'] in scope else named(call['entry'])
            told = {'type': 'called', 'value': encode(function(*[decode(item) for item in call['args']]))}
        except MemoryError as error:
            failed = failure(error)
            break
        except BaseException as error:
            told = {'type': 'called', 'error': described(error)}
        write(json.dumps(told))
    finish()
    return failed or {'type': 'done', 'status': 'ok'}

def named(name):
    raise NameError("name '" + name + "' is not defined")

def serve(task, read, write):
    """Answers calls of the program's functions until nobody asks any more."""
    scope, failed = start(task)
    if failed is not None:
        finish()
        return failed
    numbers = itertools.count(1)
    kept = {}
    def keep(value):
        number = next(numbers)
        kept[number] = value
        return number
    def handle(number):
        return kept[number]
    write(json.dumps({'type': 'serving'}))
    while True:
        text = read()
        if text is None:
            finish()
            return {'type': 'done', 'status': 'ok'}
        asked = json.loads(text)
        try:
            args = [decode(item, handle) for item in asked['args']]
            before = [mutable(item) for item in args]
            value = perform(asked, args, scope, kept)
            answer = {'value': encode(value, keep)}
            changed = {i: encode(item, keep) for i, item in enumerate(args) if before[i] is not None and before[i] != mutable(item)}
            if changed: answer['changed'] = [[i, item] for i, item in changed.items()]
        except MemoryError as error:
            finish()
            return failure(error)
        except BaseException as error:
            answer = {'error': dict(described(error), bases=[base.__name__ for base in type(error).__mro__])}
        write(json.dumps({'type': 'answer', 'payload': json.dumps(answer)}))

def mutable(value):
    try: return json.dumps(encode(value)) if isinstance(value, (list, dict, set, bytearray)) else None
    except BaseException: return None

def perform(asked, args, scope, kept):
    op = asked['op']
    if op == 'entry':
        name = asked['name']
        return scope[name] if name in scope else named(name)
    target = kept[asked['on']]
    if op == 'call':
        return target(*args[:len(args) - len(asked['keywords'])], **dict(zip(asked['keywords'], args[len(args) - len(asked['keywords']):])))
    if op == 'attribute': return getattr(target, asked['name'])
    if op == 'assign': return setattr(target, asked['name'], args[0])
    if op == 'item': return target[args[0]]
    if op == 'assign_item':
        target[args[0]] = args[1]
        return None
    if op == 'contains': return bool(args[0] in target)
    if op == 'length': return len(target)
    if op == 'truth': return bool(target)
    if op == 'text': return str(target)
    if op == 'repr': return repr(target)
    if op == 'iterate': return iter(target)
    if op == 'next':
        try: return (True, next(target))
        except StopIteration: return (False, None)
    raise ValueError('no such operation')
`;

const tests = `
class Remote:
    """Something of the program's. Its answers cross as values; what it thinks it equals is never asked."""
    __slots__ = ('_handle', '_asking')
    def __init__(self, handle, asking):
        object.__setattr__(self, '_handle', handle)
        object.__setattr__(self, '_asking', asking)
    def __call__(self, *args, **named): return self._asking('call', self._handle, (*args, *named.values()), keywords=list(named))
    def __getattr__(self, name): return self._asking('attribute', self._handle, name=name)
    def __setattr__(self, name, value): self._asking('assign', self._handle, (value,), name=name)
    def __getitem__(self, key): return self._asking('item', self._handle, (key,))
    def __setitem__(self, key, value): self._asking('assign_item', self._handle, (key, value))
    def __contains__(self, item): return self._asking('contains', self._handle, (item,)) is True
    def __len__(self): return self._asking('length', self._handle)
    def __bool__(self): return self._asking('truth', self._handle) is True
    def __str__(self): return self._asking('text', self._handle)
    def __repr__(self): return self._asking('repr', self._handle)
    def __next__(self):
        more, item = self._asking('next', self._handle)
        if more is not True: raise StopIteration
        return item
    def __iter__(self):
        iterator = self._asking('iterate', self._handle)
        if isinstance(iterator, Remote) and iterator._handle != self._handle:
            while True:
                more, item = self._asking('next', iterator._handle)
                if more is not True: return
                yield item

def judge(task, read, write):
    remotes = {}
    def remote(handle):
        if handle not in remotes: remotes[handle] = Remote(handle, asking)
        return remotes[handle]
    def crossing(value):
        if isinstance(value, Remote): return value._handle
        raise TypeError('a ' + type(value).__name__ + ' can not be handed to the program')
    def asking(op, on=None, args=(), name=None, keywords=()):
        question = {'op': op, 'on': on, 'args': [encode(item, crossing) for item in args], 'name': name, 'keywords': keywords}
        write(json.dumps({'type': 'question', 'payload': json.dumps(question)}))
        answer = json.loads(read())
        if 'error' in answer: raise raised(answer['error'])
        for i, content in answer.get('changed', ()):
            change(args[i], decode(content, remote))
        return decode(answer['value'], remote)
    scope = {'__name__': 'tests', '__builtins__': builtins}
    try:
        exec(compile(task['setup'], 'setup.py', 'exec'), scope)
        compiled = [compile(source, 'test.py', 'exec') for source in task['tests']]
    except BaseException as error:
        return {'type': 'unfit', 'error': described(error)}
    for name in task['entry']:
        try: scope[name] = asking('entry', name=name)
        except Exception: pass
    for i, source in enumerate(compiled):
        try:
            exec(source, scope)
            told = {'type': 'tested', 'index': i, 'status': 'passed'}
        except BaseException as error:
            told = {'type': 'tested', 'index': i, 'status': 'failed', 'error': described(error)}
        write(json.dumps(told))
    return {'type': 'done', 'status': 'ok'}

def change(mine, changed):
    """What the program did to a list, dict or set that it was given."""
    if type(mine) is list and type(changed) is list: mine[:] = changed
    elif type(mine) is dict and type(changed) is dict:
        mine.clear()
        mine.update(changed)
    elif type(mine) is set and type(changed) is set:
        mine.clear()
        mine.update(changed)

def raised(error):
    """The builtin exception that the program's is one of; never one that ends the tests."""
    known = (getattr(builtins, name, None) for name in error['bases'])
    kind = next((each for each in known if isinstance(each, type) and issubclass(each, Exception)), RuntimeError)
    try: return kind(error['message'])
    except TypeError: return RuntimeError(error['type'] + ': ' + error['message'])
`;

const entry = `
def main(text, read, write):
    task = json.loads(text)
    told = {'run': run, 'serve': serve, 'judge': judge}[task['type']](task, read, write)
    return json.dumps(told)
`;

/** Defines `main(task, read, write)`: task and answer are JSON, `read` waits for the next line, `write` sends one. */
export const pythonRunner: string = [values, programs, tests, entry].join('\n');
