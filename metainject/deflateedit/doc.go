// SPDX-License-Identifier: Apache-2.0

// Package deflateedit changes the beginning of a text inside its compressed
// stream (gzip, zlib or raw deflate) without unpacking and packing the rest.
//
// # How it works
//
// A deflate stream (RFC 1951) is a sequence of blocks. A block is a sequence of
// Huffman-coded tokens: literal bytes, and matches that copy LENGTH bytes from
// DISTANCE bytes back, at most 32 KiB. Inserting text therefore breaks exactly
// three things, and the Editor repairs only those:
//
//   - the tokens at the edit. They are written out as literals, with the codes of
//     the block that they stand in;
//   - matches after the edit that refer to text before it. Their distance grows
//     by the length of the insertion. Such matches end 32 KiB after the edit;
//   - the checksum at the end. CRC-32 and Adler-32 are linear in what precedes
//     the unchanged rest of the text, so the difference is worked out from the
//     length of the rest alone (checksum.go).
//
// Everything else is copied bit by bit. An example: the text "<head><title>…"
// gets "<meta>" at offset 6.
//
//	old   '<' 'h' 'e' 'a' 'd' '>' '<' 't' … match(4, 60) … match(9, 40000-32768)
//	new   '<' 'h' 'e' 'a' 'd' '>' '<' 'm' 'e' 't' 'a' '>' '<' 't' … match(4, 66) …
//
// The first match reaches back across the edit and gets a new distance; the
// second does not, and its bits are copied as they are.
//
// Two things complicate this. A block's codes may lack a symbol that is needed,
// such as a literal '"' that never occurs in the block. Then the block is ended
// early, the next few tokens are written as a block with codes of their own, and
// the old block's header is repeated to go on with the rest. And a block that is
// ended early must not be the last one, so no block is copied as final: an empty
// final block is added at the end.
//
// # Use
//
// Reset, then Peek while the stream arrives, until enough of the text is known
// to choose the edits. Then Start, with all of the stream so far, Write for the
// rest, and Close.
//
// # Guarantees
//
//   - Unpacking the result gives the old text with the edits, for every valid
//     stream (fuzzed against compress/flate with streams that no compressor
//     produces).
//   - A stream that is corrupt or cut short is corrupt or cut short in the
//     result, at the same place. Bytes after the end of the stream are copied.
//   - Memory is bounded: some 200 KiB, whatever the text unpacks to.
//   - Work is proportional to the compressed length: a token takes at least one
//     bit, and is not expanded after the last edit.
//
// The bytes of the result depend on how the input is split into Writes, and on
// calls of Flush. Its text does not.
package deflateedit
