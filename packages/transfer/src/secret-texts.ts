import { type Fields, isFields } from "@throughline/core/internal";

/** States a secret in a text. */
export interface SecretText {
  /** Names the rule that found it: `github`, `anthropic`. */
  readonly rule: string;
  /** Holds the secret itself. */
  readonly text: string;
}

/** Finds secrets in texts. */
export interface SecretFinder {
  /** Returns the secrets of each text, in order of the texts. A secret never spans two texts. */
  find(texts: readonly string[]): Promise<readonly (readonly SecretText[])[]>;
}

const separator = "\n\n";
const ruleName = /^@secretlint\/secretlint-rule-/;

/** A comment in a transcript must not hide the secrets around it, and a preset cannot disable this rule. */
const commentRule = "@secretlint/secretlint-rule-filter-comments";

/** Loads the rules of secretlint's recommended preset, which takes time and memory that other operations do not need. */
export async function createSecretFinder(): Promise<SecretFinder> {
  const [{ lintSource }, { creator }] = await Promise.all([
    import("@secretlint/core"),
    import("@secretlint/secretlint-rule-preset-recommend"),
  ]);
  const rule: typeof creator = {
    ...creator,
    create: (context, options) => {
      const registerRule: typeof context.registerRule = (each, defaults) => {
        if (each.meta.id !== commentRule) context.registerRule(each, defaults);
      };
      creator.create({ ...context, registerRule }, options);
    },
  };
  const config = { rules: [{ id: "@secretlint/secretlint-rule-preset-recommend", rule }] };
  const lint = async (content: string): Promise<readonly SecretText[]> => {
    const source = { filePath: "record.txt", content, contentType: "text", ext: ".txt" } as const;
    const { messages } = await lintSource({ source, options: { config, noPhysicFilePath: true } });
    return messages.flatMap(({ ruleId, range: [start, end] }) =>
      end > start ? [{ rule: ruleId.replace(ruleName, ""), text: content.slice(start, end) }] : [],
    );
  };
  return {
    async find(texts) {
      // Almost no text holds a secret, and one call for all of them costs a fraction of a call for each.
      if ((await lint(texts.join(separator))).length === 0) return texts.map(() => []);
      const found: (readonly SecretText[])[] = [];
      for (const text of texts) found.push(await lint(text));
      return found;
    },
  };
}

/** Returns the texts that stand for the name of a member; null leaves out the member, too. */
export type NameTexts = (name: string, member: unknown, parent: Fields) => readonly string[] | null;

/** Collects the texts of a JSON value: names and values, each once. */
export function textsIn(value: unknown, nameTexts: NameTexts = (name) => [name]): readonly string[] {
  const texts = new Set<string>();
  const values: unknown[] = [value];
  while (values.length > 0) {
    const next = values.pop();
    if (typeof next === "string") texts.add(next);
    // A long list would not fit into the arguments of one push.
    else if (Array.isArray(next)) for (const member of next as readonly unknown[]) values.push(member);
    else if (isFields(next))
      for (const [name, member] of Object.entries(next)) {
        const own = nameTexts(name, member, next);
        if (own === null) continue;
        for (const text of own) texts.add(text);
        values.push(member);
      }
  }
  return [...texts];
}
