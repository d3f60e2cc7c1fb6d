import { call, line, part, prompt, result, text, uuid, type Fields } from "./lines.ts";

/** Numbers below a limit, the same ones of the same seed. */
function choices(seed: number): (limit: number) => number {
  let state = seed * 0x9e3779b1 + 1;
  return (limit) => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b) + 0x6d2b79f5;
    return ((state ^ (state >>> 13)) >>> 0) % limit;
  };
}

/** A line of the tree by its short name, as the generator remembers it. */
interface Node {
  readonly name: string;
  /** As the program follows it: what a compaction kept hangs on its summary. */
  readonly parent: string | null;
  /** Whether a compaction may keep it. */
  readonly isMessage: boolean;
}

/**
 * A session with all that Claude Code does to its tree: replies of several blocks, tools side by side, notes, rewinds,
 * sub-agents, team mates, and compactions that keep nothing, a tail or a choice of messages.
 */
export class RandomTree {
  readonly lines: Fields[] = [];
  readonly #pick: (limit: number) => number;
  readonly #nodes = new Map<string, Node>();
  readonly #prompts: string[] = [];
  /** What stands behind a summary by its line: the last message that was kept. */
  readonly #tails = new Map<string, string>();
  #count = 0;
  #leaf: string | null = null;
  /** The kept messages of the newest compaction, in order. */
  #kept: readonly string[] = [];

  constructor(seed: number) {
    this.#pick = choices(seed);
    const steps = 3 + this.#pick(9);
    for (let step = 0; step < steps; step++) this.#step();
    this.#say("End");
    this.#reply([text(`Answer ${this.#count}`)]);
  }

  #step(): void {
    const pick = this.#pick(12);
    if (pick <= 4) return this.#turn();
    if (pick <= 7) return this.#compaction();
    if (pick === 8) return this.#rewind();
    if (pick === 9) return this.#subAgent();
    if (pick === 10) return this.#note();
    this.#aside();
  }

  #name(kind: string): string {
    this.#count += 1;
    return `${kind}${this.#count}`;
  }

  #add(name: string, made: Fields, isMessage: boolean, moves: boolean = true): void {
    const parentUuid = made["parentUuid"];
    const stated = [...this.#nodes.keys()].find((one) => uuid(one) === parentUuid) ?? null;
    this.lines.push(made);
    this.#nodes.set(name, { name, parent: this.#tails.get(stated ?? "") ?? stated, isMessage });
    if (moves) this.#leaf = name;
  }

  #say(words: string, fields: Fields = {}): string {
    const name = this.#name("u");
    this.#prompts.push(name);
    this.#add(name, prompt(name, this.#leaf, `${words} ${name}`, fields), true);
    return name;
  }

  #reply(blocks: readonly Fields[]): readonly string[] {
    const reply = this.#name("m");
    return blocks.map((block) => {
      const name = this.#name("a");
      this.#add(name, part(name, this.#leaf, reply, block), true);
      return name;
    });
  }

  #turn(): void {
    this.#say("Question");
    for (let step = this.#pick(3); step > 0; step--) this.#tools(this.#pick(2) === 0);
    if (this.#pick(5) > 0) this.#reply([text(`Answer ${this.#count}`)]);
  }

  /**
   * Calls and their results; each result names the line of its call, and the next line the last result. A tool may answer
   * before the reply has ended: the next call then names that result.
   */
  #tools(isThought: boolean): void {
    const ids = Array.from({ length: 1 + this.#pick(3) }, () => this.#name("t"));
    if (this.#pick(4) === 0) return this.#interleaved(ids, isThought);
    const names = this.#reply([...(isThought ? [this.#thought()] : []), ...ids.map(call)]).slice(-ids.length);
    const order = this.#pick(2) === 0 ? [...ids.keys()] : [...ids.keys()].toReversed();
    for (const at of order) {
      const name = this.#name("r");
      this.#add(name, result(name, names[at] ?? "", ids[at] ?? ""), true);
      if (this.#pick(6) === 0) this.#note();
    }
  }

  #thought(): Fields {
    return { type: "thinking", thinking: this.#name("h"), signature: "c2ln" };
  }

  #interleaved(ids: readonly string[], isThought: boolean): void {
    const reply = this.#name("m");
    const add = (block: Fields, parent: string | null): string => {
      const name = this.#name("a");
      this.#add(name, part(name, parent, reply, block), true);
      return name;
    };
    let above = isThought ? add(this.#thought(), this.#leaf) : this.#leaf;
    for (const id of ids) {
      const called = add(call(id), above);
      const name = this.#name("r");
      this.#add(name, result(name, called, id), true);
      above = name;
    }
  }

  #note(): void {
    const name = this.#name("n");
    const kinds: readonly Fields[] = [
      { type: "system", subtype: "informational", content: "Note" },
      { type: "attachment", attachment: { type: "todo", content: [] } },
      { type: "progress", data: { type: "hook" } },
    ];
    this.#add(name, line(name, this.#leaf, kinds[this.#pick(kinds.length)] ?? {}), false, this.#leaf !== null);
  }

  #aside(): void {
    if (this.#pick(2) === 0) this.#say("Caveat", { isMeta: true });
    else {
      const name = this.#name("p");
      this.#add(name, prompt(name, this.#leaf, "From a team mate.", { teamName: "blue" }), false, false);
    }
  }

  #subAgent(): void {
    const first = this.#name("s");
    this.#add(first, prompt(first, null, "Search.", { isSidechain: true, agentId: "x" }), false, false);
    const second = this.#name("s");
    const found = { ...part(second, first, this.#name("m"), text("Found.")), isSidechain: true, agentId: "x" };
    this.#add(second, found, false, false);
  }

  /** A person goes back to before a question, and asks another one. */
  #rewind(): void {
    const name = this.#prompts[this.#pick(Math.max(1, this.#prompts.length))];
    const parent = this.#nodes.get(name ?? "")?.parent ?? null;
    // Nobody sees a boundary, to go back to it.
    if (name === undefined || parent?.startsWith("b") === true) return this.#turn();
    this.#leaf = parent;
    this.#turn();
  }

  /** The messages from the leaf up, the newest last. */
  #branch(): readonly string[] {
    const found: string[] = [];
    for (let name = this.#leaf; name !== null; name = this.#nodes.get(name)?.parent ?? null)
      if (this.#nodes.get(name)?.isMessage === true) found.push(name);
    return found.toReversed();
  }

  #compaction(): void {
    if (this.#leaf === null) this.#turn();
    if (this.#pick(3) === 0) this.#openCall();
    const [boundary, summary] = [this.#name("b"), this.#name("c")];
    const tail = this.#branch().slice(-1 - this.#pick(6));
    const shape = this.#pick(6);
    const kept = shape <= 1 ? [] : shape === 4 ? tail.filter((_, at) => at === 0 || this.#pick(3) > 0) : tail;
    const anchorUuid = shape === 5 ? uuid(boundary) : uuid(summary);
    const segment = { headUuid: uuid(kept[0] ?? ""), anchorUuid, tailUuid: uuid(kept.at(-1) ?? "") };
    const preserved =
      kept.length === 0
        ? {}
        : shape === 2
          ? { preservedSegment: segment }
          : { preservedMessages: { anchorUuid, uuids: kept.map(uuid) } };
    const fields = {
      type: "system",
      subtype: "compact_boundary",
      logicalParentUuid: this.#leaf === null ? null : uuid(this.#leaf),
      compactMetadata: { trigger: "auto", preTokens: 1000, ...preserved },
    };
    this.#add(boundary, line(boundary, null, fields), false);
    if (this.#pick(4) === 0) this.#subAgent();
    if (this.#pick(6) === 0) this.#note();
    this.#add(summary, prompt(summary, this.#leaf, `Summary ${summary}`, { isCompactSummary: true }), false);
    this.#kept = kept;
    this.#relink(kept, shape === 5 ? boundary : summary);
    this.#behind(tail);
  }

  #relink(kept: readonly string[], anchor: string): void {
    const last = kept.at(-1);
    if (last === undefined) return;
    let parent = anchor;
    for (const name of kept) {
      this.#nodes.set(name, { ...(this.#nodes.get(name) as Node), parent });
      parent = name;
    }
    for (const node of this.#nodes.values())
      if (node.parent === anchor && node.name !== kept[0]) this.#nodes.set(node.name, { ...node, parent: last });
    this.#tails.set(anchor, last);
  }

  /** A compaction may come while a tool is at work. */
  #openCall(): void {
    const id = this.#name("t");
    this.#reply([call(id)]);
    this.#open = { id, name: this.#leaf ?? "" };
  }
  #open: { readonly id: string; readonly name: string } | null = null;

  /** What follows hangs on the summary, or on what was kept. */
  #behind(tail: readonly string[]): void {
    const open = this.#open;
    this.#open = null;
    if (open !== null && tail.length > 0 && this.#pick(4) > 0) {
      const name = this.#name("r");
      const parent = this.#kept.includes(open.name) && this.#pick(2) === 0 ? open.name : (this.#leaf ?? "");
      const answered = result(name, open.name, open.id);
      this.#add(name, { ...answered, parentUuid: uuid(parent) }, true);
      return;
    }
    const where = this.#pick(4);
    if (this.#kept.length === 0 || where > 1) return;
    this.#leaf = (where === 0 ? this.#kept.at(-1) : this.#kept[this.#pick(this.#kept.length)]) ?? this.#leaf;
    this.#say("Behind");
  }
}
