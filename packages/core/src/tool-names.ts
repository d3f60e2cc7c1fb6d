import { ThroughlineError } from "./throughline-error.ts";

/** What a provider takes as the name of a tool, in its list of tools and in the calls of a history alike. */
export interface ToolNameRule {
  /** Every character that it refuses; global. */
  readonly forbidden: RegExp;
  readonly maxLength: number;
  /** What a name must begin with. @default anything */
  readonly first?: RegExp;
}

const usual: ToolNameRule = { forbidden: /[^a-zA-Z0-9_-]/g, maxLength: 64 };
const withDots = /[^a-zA-Z0-9_.-]/g;

/** By the wire shape, as `ChatModel.api` and the targets of a history name it. */
const rules: Readonly<Record<string, ToolNameRule>> = {
  anthropic: { ...usual, maxLength: 128 },
  gemini: { forbidden: withDots, maxLength: 64, first: /^[a-zA-Z_]/ },
  ollama: { forbidden: withDots, maxLength: 128 },
};

/** The rule of a wire shape. One that is not known takes what all take. */
export function toolNameRule(api: string): ToolNameRule {
  return rules[api] ?? usual;
}

/**
 * The name of a tool as a provider gets it: the same where the provider takes it, and else always the same other one. The
 * list of tools and the calls of a history both have it from here.
 */
export function wireToolName(name: string, { forbidden, maxLength, first }: ToolNameRule): string {
  const plain = name.trim().replace(forbidden, "_") || "unnamed_tool";
  const begun = first === undefined || first.test(plain) ? plain : `_${plain}`;
  if (begun.length <= maxLength) return begun;
  // What is cut off would be all that tells two long names apart.
  const hash = shortHash(name);
  return `${begun.slice(0, maxLength - hash.length - 1)}_${hash}`;
}

/** FNV-1a in base 36. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, "0");
}

/**
 * The names of tools by those that a provider gets.
 * @throws {ThroughlineError} INPUT_INVALID when two tools would have the same
 */
export function toolsByWireName(names: readonly string[], api: string): ReadonlyMap<string, string> {
  const rule = toolNameRule(api);
  const byWireName = new Map<string, string>();
  for (const name of names) {
    const wire = wireToolName(name, rule);
    const other = byWireName.get(wire);
    if (other !== undefined) {
      const [one, two] = [JSON.stringify(other), JSON.stringify(name)];
      const message = `The tools ${one} and ${two} would both be called ${JSON.stringify(wire)} by the provider.`;
      throw new ThroughlineError("INPUT_INVALID", message, {
        details: { tools: [other, name], wireName: wire },
        remedy: "Rename or leave out one of the two tools.",
      });
    }
    byWireName.set(wire, name);
  }
  return byWireName;
}
