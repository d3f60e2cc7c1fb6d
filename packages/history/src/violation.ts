/** Describes a provider's rule that a list of messages violates, with the provider's error text. */
export interface Violation {
  /** Names the rule. */
  readonly rule: string;
  /** States the dotted path, such as `messages.3.content.0`. */
  readonly path: string;
  /** Holds the error text of the provider. */
  readonly text: string;
}

export class ViolationList {
  readonly found: Violation[] = [];

  fail(rule: string, path: string, text: string): void {
    this.found.push({ rule, path, text });
  }
}
