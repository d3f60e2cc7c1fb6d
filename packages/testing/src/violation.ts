/** What a provider says when it refuses a request, before it is put into the provider's envelope. */
export interface Violation {
  readonly status: number;
  /** The provider's error type, such as `invalid_request_error`; Ollama and Gemini have none and leave it empty. */
  readonly type: string;
  readonly message: string;
  /** OpenAI: the parameter at fault. */
  readonly param?: string | null;
  /** OpenAI, Mistral: the machine-readable code. */
  readonly code?: string | null;
}

/** One rule: null when the request keeps it. */
export type Rule<Request> = (request: Request) => Violation | null;

/** The first violation in the order of the rules: a provider names one fault at a time. */
export function firstViolation<Request>(request: Request, rules: readonly Rule<Request>[]): Violation | null {
  for (const rule of rules) {
    const violation = rule(request);
    if (violation) return violation;
  }
  return null;
}

/** The first violation among the members of a list. */
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

/** A 400 with `invalid_request_error`, the shape Anthropic and OpenAI share. */
export function invalidRequest(message: string, param: string | null = null, code: string | null = null): Violation {
  return { status: 400, type: "invalid_request_error", message, param, code };
}
