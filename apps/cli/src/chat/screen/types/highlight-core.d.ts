// Stands for the library's own types, which bring those of a browser into every file of the program (tsconfig.json).
import type Grammar from "./highlight-grammar.js";

declare const library: {
  registerLanguage(name: string, grammar: typeof Grammar): void;
  getLanguage(name: string): object | undefined;
  /** Returns HTML of one element, `span`. */
  highlight(
    code: string,
    options: { readonly language: string; readonly ignoreIllegals: boolean },
  ): { readonly value: string };
};
// oxlint-disable-next-line import/no-default-export -- the library has one
export { library as default };
