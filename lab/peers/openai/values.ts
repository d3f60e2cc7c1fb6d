// Values of the types of a package's declarations, made by the TypeScript of the folder that this is copied into.
import { createRequire } from "node:module";

/** What is used of TypeScript's compiler. The checkout has another version of it. */
interface Symbol {
  readonly name: string;
  readonly flags: number;
}
export interface Type {
  readonly flags: number;
  readonly symbol?: Symbol;
  readonly aliasSymbol?: Symbol;
  readonly value?: unknown;
  readonly types?: readonly Type[];
  readonly aliasTypeArguments?: readonly Type[];
  getProperties(): readonly Symbol[];
  getProperty(name: string): Symbol | undefined;
  getCallSignatures(): readonly Signature[];
  isUnion(): boolean;
}
export interface Signature {
  readonly parameters: readonly Symbol[];
  getReturnType(): Type;
}
interface Checker {
  getTypeOfSymbol(symbol: Symbol): Type;
  getDeclaredTypeOfSymbol(symbol: Symbol): Type;
  getTypeArguments(type: Type): readonly Type[];
  getExportsOfModule(module: Symbol): readonly Symbol[];
  getSymbolAtLocation(node: unknown): Symbol | undefined;
  getBaseConstraintOfType(type: Type): Type | undefined;
  isArrayType(type: Type): boolean;
  isTupleType(type: Type): boolean;
  typeToString(type: Type): string;
}
interface Compiler {
  readonly TypeFlags: Readonly<Record<string, number>>;
  readonly SymbolFlags: Readonly<Record<string, number>>;
  readonly ModuleKind: Readonly<Record<string, number>>;
  readonly ModuleResolutionKind: Readonly<Record<string, number>>;
  createProgram(
    files: readonly string[],
    options: object,
  ): {
    getTypeChecker(): Checker;
    getSourceFile(name: string): unknown;
  };
}

const ts = createRequire(import.meta.url)("typescript") as Compiler;
const deepest = 8;
const text = ts.TypeFlags["String"] ?? 0;

/** Makes values of the types that a declaration file exports. */
export class Values {
  readonly #checker: Checker;
  readonly #exported: ReadonlyMap<string, Symbol>;

  constructor(file: string) {
    const options = {
      module: ts.ModuleKind["NodeNext"],
      moduleResolution: ts.ModuleResolutionKind["NodeNext"],
      lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.asynciterable.d.ts"],
      types: [],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    };
    const program = ts.createProgram([file], options);
    this.#checker = program.getTypeChecker();
    const module = this.#checker.getSymbolAtLocation(program.getSourceFile(file));
    if (module === undefined) throw new RangeError(`${file} exports nothing.`);
    this.#exported = new Map(this.#checker.getExportsOfModule(module).map((symbol) => [symbol.name, symbol]));
  }

  /** The type of the instances of an exported class. */
  classType(name: string): Type {
    const symbol = this.#exported.get(name);
    if (symbol === undefined) throw new RangeError(`The declarations export no ${name}.`);
    return this.#checker.getDeclaredTypeOfSymbol(symbol);
  }

  member(type: Type, name: string): Type | null {
    const symbol = type.getProperty(name);
    return symbol === undefined ? null : this.#checker.getTypeOfSymbol(symbol);
  }

  names(type: Type): readonly string[] {
    return type.getProperties().map(({ name }) => name);
  }

  /** The arguments of a call, without what a request may be given beside them. */
  argumentsOf({ parameters }: Signature): readonly unknown[] {
    const given: unknown[] = [];
    for (const parameter of parameters) {
      const isOptional = parameter.name === "options" || parameter.name === "requestOptions";
      given.push(
        isOptional ? undefined : this.#value(this.#checker.getTypeOfSymbol(parameter), parameter.name, 0, false),
      );
    }
    return given;
  }

  /** Whether the call is made as a stream: what it returns promises one. */
  isStream(signature: Signature): boolean {
    return this.#named(this.#promised(signature.getReturnType()), "Stream") !== null;
  }

  /** The body of an answer; null where the call promises bytes. */
  answerOf(signature: Signature): unknown {
    const returned = signature.getReturnType();
    const [page, item] = returned.symbol?.name === "PagePromise" ? this.#arguments(returned) : [];
    if (page !== undefined)
      return {
        object: "list",
        data: item === undefined ? [] : [this.#value(item, "item", 1, true)],
        has_more: false,
        first_id: "val_first",
        last_id: "val_last",
      };
    const promised = this.#promised(returned);
    if (promised.symbol?.name === "Response") return null;
    const stream = this.#named(promised, "Stream");
    if (stream === null) return this.#value(promised, "answer", 0, true);
    const [event] = this.#arguments(stream);
    const kinds = event === undefined ? [] : event.isUnion() ? (event.types ?? []) : [event];
    return kinds.map((kind) => this.#value(kind, "event", 1, true));
  }

  #promised(type: Type): Type {
    const [inner] = (type.symbol?.name.endsWith("Promise") ?? false) ? this.#arguments(type) : [];
    return inner === undefined ? type : this.#promised(inner);
  }

  #arguments(type: Type): readonly Type[] {
    return this.#checker.getTypeArguments(type);
  }

  #named(type: Type, name: string): Type | null {
    if (type.symbol?.name === name) return type;
    return type.isUnion() ? ((type.types ?? []).find((one) => one.symbol?.name === name) ?? null) : null;
  }

  /** @param isWhole members that may be missing are there as well */
  #value(type: Type, name: string, depth: number, isWhole: boolean): unknown {
    const is = (flag: string): boolean => (type.flags & (ts.TypeFlags[flag] ?? 0)) !== 0;
    if (is("TypeParameter")) {
      const constraint = this.#checker.getBaseConstraintOfType(type);
      return constraint === undefined ? {} : this.#value(constraint, name, depth, isWhole);
    }
    // A text of a few that are known, or any other.
    const isOpenText = is("Intersection") && (type.types ?? []).some(({ flags }) => (flags & text) !== 0);
    if (isOpenText) return `val_${name}`;
    if (is("StringLiteral") || is("NumberLiteral")) return type.value;
    if (is("BooleanLiteral")) return this.#checker.typeToString(type) === "true";
    if (is("Null")) return null;
    if (is("String") || is("TemplateLiteral")) return `val_${name}`;
    if (is("Number")) return 1;
    if (is("Boolean")) return true;
    if (type.aliasSymbol?.name === "Uploadable" || type.symbol?.name === "FileLike" || type.symbol?.name === "Blob")
      return new File(["What is in the file.\n"], "file.txt", { type: "text/plain" });
    if (type.isUnion()) return this.#oneOf(type.types ?? [], name, depth, isWhole);
    if (!is("Object") && !is("Intersection")) return {};
    if (type.getCallSignatures().length > 0) return () => ({});
    if (this.#checker.isArrayType(type) || this.#checker.isTupleType(type))
      return this.#arguments(type).map((each) => this.#value(each, name, depth + 1, isWhole));
    if (depth >= deepest) return {};
    const members = type.getProperties().filter(({ flags }) => {
      const mayMiss = (flags & (ts.SymbolFlags["Optional"] ?? 0)) !== 0;
      return !mayMiss || (isWhole && depth < 3);
    });
    return Object.fromEntries(
      members.map((member) => [
        member.name,
        this.#value(this.#checker.getTypeOfSymbol(member), member.name, depth + 1, isWhole),
      ]),
    );
  }

  #oneOf(types: readonly Type[], name: string, depth: number, isWhole: boolean): unknown {
    const upload = types.find(({ symbol }) => symbol?.name === "FileLike" || symbol?.name === "File");
    const absent = (ts.TypeFlags["Undefined"] ?? 0) | (ts.TypeFlags["Null"] ?? 0);
    const present = types.filter(({ flags }) => (flags & absent) === 0);
    // Whoever polls waits for an end.
    const done = present.find(({ value }) => value === "completed");
    const some = upload ?? (name === "status" ? done : undefined) ?? present[0] ?? types[0];
    return some === undefined ? null : this.#value(some, name, depth, isWhole);
  }
}
