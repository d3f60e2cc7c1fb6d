/** Describes a provider's rejection of a request, before the adapter wraps it in the provider's error format. */
export interface Violation {
  readonly status: number;
  /** Holds the provider's error type, such as `invalid_request_error`. Ollama has none and leaves the type empty. */
  readonly type: string;
  readonly message: string;
  /** OpenAI: names the parameter at fault. */
  readonly param?: string | null;
  /** OpenAI and Mistral: holds the machine-readable code. */
  readonly code?: string | null;
}

/** Returns null when the request satisfies the rule. */
export type Rule<Request> = (request: Request) => Violation | null;

/** Returns the first violation in the order of the rules, because a provider reports one fault at a time. */
export function firstViolation<Request>(request: Request, rules: readonly Rule<Request>[]): Violation | null {
  for (const rule of rules) {
    const violation = rule(request);
    if (violation) return violation;
  }
  return null;
}

export function firstOf<Item>(
  items: readonly Item[],
  rule: (item: Item, index: number) => Violation | null,
): Violation | null {
  for (const [index, item] of items.entries()) {
    const violation = rule(item, index);
    if (violation) return violation;
  }
  return null;
}

/** Anthropic and OpenAI share this form of a rejection. */
export function invalidRequest(message: string, param: string | null = null, code: string | null = null): Violation {
  return { status: 400, type: "invalid_request_error", message, param, code };
}
