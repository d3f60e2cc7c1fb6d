import { hasErrorCode } from "@throughline/core";
import { without, type Mutant } from "./mutant.ts";

export const codecMutants: readonly Mutant[] = [
  { name: "codec leaks", foundBy: "codec/no-plain-text", codec: () => undefined },
  {
    name: "codec leaks entries",
    foundBy: "codec/no-plain-text",
    codec: (codec) => ({
      ...codec,
      encode: (plain, context) => (context.part === "entry" ? plain : codec.encode(plain, context)),
      decode: (coded, context) => (context.part === "entry" ? coded : codec.decode(coded, context)),
    }),
  },
  {
    name: "payloads are bound to no place",
    foundBy: "codec/context",
    codec: (codec) => {
      const nowhere = { namespace: "", agentId: "", sessionId: "", id: "", part: "blob" } as const;
      return {
        ...codec,
        encode: (plain) => codec.encode(plain, nowhere),
        decode: (coded) => codec.decode(coded, nowhere),
      };
    },
  },
  {
    name: "a rename leaves the entry bound to the old key",
    foundBy: "codec/round-trip",
    codec: (codec) => {
      let firstKey: string | null = null;
      return {
        ...codec,
        encode: (plain, context) => {
          if (context.part === "entry") firstKey ??= context.id;
          return codec.encode(plain, context.part === "entry" ? { ...context, id: firstKey ?? "" } : context);
        },
      };
    },
  },
  {
    name: "errors of a codec get out as they are",
    foundBy: "codec/failure",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          throw hasErrorCode(error, "CODEC_FAILED") ? error.cause : error;
        }
      },
    }),
  },
  {
    name: "what cannot be decoded is not there",
    foundBy: "codec/wrong-codec",
    handle: (inner) => ({
      load: async (ref, options) => {
        try {
          return await inner.load(ref, options);
        } catch (error) {
          if (!hasErrorCode(error, "CODEC_FAILED")) throw error;
          return null;
        }
      },
    }),
  },
  {
    name: "an entry that cannot be decoded begins anew",
    foundBy: "codec/wrong-codec",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          if (!hasErrorCode(error, "CODEC_FAILED") || options?.entry === undefined) throw error;
          await inner.append(ref, drafts, without(options, "entry"));
          throw error;
        }
      },
    }),
  },
];
