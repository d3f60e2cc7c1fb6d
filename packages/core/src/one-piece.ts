/** Returns a stream of some bytes, in one piece. */
export async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}
