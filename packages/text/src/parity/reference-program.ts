/** A Python program that renders the chats of a check by transformers. */
import { printExactJson } from '../template/exact-json.js';
import { jsonValue } from '../template/messages.js';
import type { ParityCase } from './parity-case.js';

/**
 * It prints what `readReferenceFile` reads.
 *
 * @param model directory of the model
 */
export function referenceProgram(model: string, cases: readonly ParityCase[]): string {
  const rows = cases.map(({ case: name, messages, tools, kwargs }) => ({ case: name, messages, tools, kwargs }));
  return `import datetime, json, os, sys
import tokenizers, transformers

model = ${pythonText(model)}
templates = transformers.AutoTokenizer.from_pretrained(model)
# The file itself: some classes of transformers split words otherwise than it says.
tokenizer = tokenizers.Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
cases = json.loads(${pythonText(printExactJson(jsonValue(rows, 'cases')))})
now = datetime.datetime.now().replace(microsecond=0)
for row in cases:
    try:
        row["expected"] = templates.apply_chat_template(
            row["messages"], tools=row["tools"], tokenize=False, **row["kwargs"]
        )
        row["ids"] = tokenizer.encode(row["expected"], add_special_tokens=False).ids
    except Exception as error:
        row["error"] = type(error).__name__
made_by = "transformers " + transformers.__version__
json.dump({"made_by": made_by, "now": now.isoformat(), "cases": cases}, sys.stdout)
`;
}

/** A literal in printable ASCII: JSON's escapes are Python's too, but for pairs of surrogates. */
function pythonText(text: string): string {
  const escaped = (char: string): string => {
    const code = char.codePointAt(0)!;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  };
  return JSON.stringify(text).replace(/[^\x20-\x7e]/gu, escaped);
}
