/** Tokenizers and chat templates: text and chats to token ids and back. Runs in browsers; files are read by `@loopwright/text/node`. */
export type { RendererReport } from './parity/check-renderer.js';
export { checkRenderer, referenceProgramFor } from './parity/check-renderer.js';
export type { Difference } from './parity/difference.js';
export type { CheckName, Finding } from './parity/finding.js';
export type { ParityCase, ReferenceCase, ReferenceFile } from './parity/parity-case.js';
export { readReferenceFile } from './parity/parity-case.js';
export type { ChatFamily } from './renderers/families.js';
export type {
  BrokenCall,
  ParsedCall,
  ParsedMessage,
  ParsedTurn,
  ParseOptions,
  ParseStatus,
} from './renderers/parse-turn.js';
export { brokenCallReply } from './renderers/parse-turn.js';
export type { PrefixBreak } from './renderers/prefix-breaks.js';
export { prepareMessages, shortCallId } from './renderers/prepare-messages.js';
export type { RenderedMessages, Renderer, RenderOptions, TokenSpan, TurnSpan } from './renderers/renderer.js';
export { rendererFor } from './renderers/renderer.js';
export type { StreamDecoder } from './stream-decoder.js';
export type { ChatMessage, ContentPart } from './template/messages.js';
export { tokenOfBytes } from './token-bytes.js';
export type {
  ChatTemplateOptions,
  DecodeOptions,
  EncodeChatOptions,
  EncodedChat,
  EncodeOptions,
  LoadTokenizerOptions,
  RenderedChat,
  Tokenizer,
} from './tokenizer.js';
export { loadTokenizer } from './tokenizer.js';
export type { AddedTokenFile, TokenizerFiles, TokenizerSources } from './tokenizer-files.js';
export { readTokenizerFiles } from './tokenizer-files.js';
export { endsInThought } from './turns/ends-in-thought.js';
export type { BrokenReason, TurnEnd, TurnEvent, TurnParser } from './turns/turn-event.js';
export type { CallBeginning, ToolFormat, TurnFormat, TurnParserOptions } from './turns/turn-format.js';
export { callBeginning, turnFormatOf, turnParser } from './turns/turn-format.js';
export { UntilStop } from './until-stop.js';
