/*
 * The parts of the Standard Schema interfaces that `defineTool` uses. The specification asks libraries to restate them
 * where they want no dependency: a schema of zod, valibot or arktype fits by its shape alone.
 */

/** A schema whose library implements Standard Schema, such as zod, valibot and arktype. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  /** The specification's part of a schema. */
  readonly "~standard": StandardSchemaProps<Input, Output>;
}

/** What a schema says of itself, and how it checks a value. */
interface StandardSchemaProps<Input = unknown, Output = Input> {
  readonly version: 1;
  /** The library, such as `zod`. */
  readonly vendor: string;
  /** Exists for the compiler only. */
  readonly types?:
    | {
        /** What the schema takes. */
        readonly input: Input;
        /** What it gives. */
        readonly output: Output;
      }
    | undefined;
  /** Checks a value, and gives it in the schema's own form. */
  readonly validate: (
    value: unknown,
    options?: { readonly libraryOptions?: Record<string, unknown> | undefined },
  ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
}

/** The value, or why there is none. */
type StandardSchemaResult<Output> =
  | {
      /** The value in the schema's own form. */
      readonly value: Output;
      /** Always absent beside a value. */
      readonly issues?: undefined;
    }
  | {
      /** At least one reason. */
      readonly issues: readonly StandardSchemaIssue[];
    };

/** Why a value does not fit. */
export interface StandardSchemaIssue {
  /** The reason, for people. */
  readonly message: string;
  /** The path to the part that does not fit, from the outside. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The value that a schema gives after checking. */
export type StandardSchemaOutput<Schema extends StandardSchemaV1> = NonNullable<Schema["~standard"]["types"]>["output"];

/** What newer versions of the libraries add: they make JSON Schema by themselves. */
export interface StandardJsonSchemaProps {
  readonly jsonSchema: {
    readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  };
}
