// A module of its own, so that it alone is loaded when a store is another program's, which is seldom.
export { explainForeignStore } from "@throughline/transfer/internal";
