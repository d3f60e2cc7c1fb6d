// This separate module is loaded only when a store belongs to another program, which is rare.
export { explainForeignStore } from "@throughline/transfer/internal";
