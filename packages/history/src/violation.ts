/** A provider's rule that a list of messages breaks, with the text the provider answers. */
export interface Violation {
  /** The name of the rule. */
  readonly rule: string;
  /** Dotted, as in `messages.3.content.0`. */
  readonly path: string;
  /** What the provider answers to it. */
  readonly text: string;
}

/** Collects what a validator finds. */
export class ViolationList {
  readonly found: Violation[] = [];

  fail(rule: string, path: string, text: string): void {
    this.found.push({ rule, path, text });
  }
}
