// Compressed data inside a script.

/** The bytes of a zlib stream, from their base64. */
export async function inflate(base64: string): Promise<ArrayBuffer> {
  const compressed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
