import type { ListedSession } from "./listed-session.ts";
import type { NameMatch } from "./name-matches.ts";
import { noTextHits, type TextHit, type TextHits } from "./text-hits.ts";

/** One line of choice: a new session, a session found by name, or one found by its texts. */
export type PickerItem =
  | { readonly kind: "new"; readonly id: "new" }
  | { readonly kind: "name"; readonly id: string; readonly match: NameMatch }
  | { readonly kind: "text"; readonly id: string; readonly session: ListedSession; readonly found: TextHit };

const newItem: PickerItem = { kind: "new", id: "new" };

/** The items and the chosen one, which stays the same when others come and go around it. */
export class PickerList {
  #names: readonly NameMatch[] = [];
  #texts: readonly PickerItem[] = [];
  #hits: TextHits = noTextHits;
  #chosen = 0;
  #chosenId: string = newItem.id;
  #top = 0;

  get hits(): TextHits {
    return this.#hits;
  }

  get nameCount(): number {
    return this.#names.length;
  }

  get count(): number {
    return 1 + this.#names.length + this.#texts.length;
  }

  get chosen(): PickerItem {
    return this.at(this.#chosen) ?? newItem;
  }

  /** States where the texts begin; there is none at this place if no text was found. */
  get firstText(): number {
    return 1 + this.#names.length;
  }

  at(index: number): PickerItem | null {
    if (index === 0) return newItem;
    const match = this.#names[index - 1];
    if (match !== undefined) return { kind: "name", id: match.session.id, match };
    return this.#texts[index - this.firstText] ?? null;
  }

  setNames(names: readonly NameMatch[]): void {
    this.#change(() => (this.#names = names));
  }

  setTexts(hits: TextHits, sessionOf: (hit: TextHit) => ListedSession | null): void {
    this.#change(() => {
      this.#hits = hits;
      this.#texts = hits.sessions.flatMap((found): readonly PickerItem[] => {
        const session = sessionOf(found);
        return session === null ? [] : [{ kind: "text", id: `text ${session.id}`, session, found }];
      });
    });
  }

  /** Chooses the first session, or the new one if the list has none. */
  chooseFirst(): void {
    this.#choose(this.count > 1 ? 1 : 0);
    this.#top = 0;
  }

  move(by: number): void {
    this.#choose(Math.max(0, Math.min(this.count - 1, this.#chosen + by)));
  }

  /** Returns the first item to show in this many rows, so that the chosen one is among them. */
  topFor(rows: number, heightOf: (index: number) => number): number {
    this.#top = Math.max(0, Math.min(this.#top, this.#chosen));
    let height = 0;
    for (let index = this.#top; index <= this.#chosen; index++) height += heightOf(index);
    while (height > rows && this.#top < this.#chosen) height -= heightOf(this.#top++);
    return this.#top;
  }

  #choose(index: number): void {
    this.#chosen = index;
    this.#chosenId = this.at(index)?.id ?? newItem.id;
  }

  /** Keeps the chosen item where it is on the screen. */
  #change(work: () => void): void {
    const before = this.#chosen;
    work();
    if (this.at(before)?.id !== this.#chosenId) {
      const found = this.#indexOf(this.#chosenId);
      this.#choose(found ?? Math.min(before, this.count - 1));
    }
    this.#top = Math.max(0, this.#top + this.#chosen - before);
  }

  #indexOf(id: string): number | null {
    const named = this.#names.findIndex(({ session }) => session.id === id);
    if (named >= 0) return named + 1;
    const text = this.#texts.findIndex((item) => item.id === id);
    return text >= 0 ? this.firstText + text : null;
  }
}
