/** Turns of models without tools: all is text; control tokens are left out. */
import { type TurnEvent, type TurnParser, textEvent } from './turn-event.js';

export class PlainTurn implements TurnParser {
  text(piece: string): TurnEvent[] {
    return textEvent(piece);
  }

  control(): TurnEvent[] {
    return [];
  }

  end(): TurnEvent[] {
    return [];
  }
}
