// SPDX-License-Identifier: Apache-2.0

// Package metainject gives pages the robots meta elements of a policy, while
// they are streamed, and lets the caller set the headers that say the same.
//
// One writer serves both. A handler wraps the response, runs the next one, and
// closes:
//
//	rw := metainject.Wrap(w, r, metainject.Options{Set: set, ETagSuffix: "-rp1f2e3d", Header: hook})
//	defer rw.Release()
//	err := next(rw, rw.Request())
//	if cerr := rw.Close(err); err == nil {
//		err = cerr
//	}
//	return err
//
// Without elements (an empty Set) the writer is the HeaderHook and nothing else.
// If the handler failed and rw.Committed() is false, nothing has been sent, the
// header map has not been touched, and another answer can be given through w.
//
// # What changes
//
// The page gets one element per audience, where its head begins, or behind the
// element that declares the character encoding if that would otherwise leave
// the first 1,024 bytes. Elements that the page has already in its head are
// merged to the most restrictive (Merge), or replaced (Replace): the first one
// for an audience is changed where it stands, further ones are taken out. These
// count as such:
//
//   - name="robots", or a product token that is known (NewSet);
//   - property= instead of name=, a common slip, and
//     http-equiv="X-Robots-Tag", by which an author means the header (with
//     "googlebot: noindex" for one crawler). Crawlers heed neither, so an
//     element with name= takes their place.
//
// An element for one crawler need not repeat what everyone is told, as readers
// add both up; but if it permits what everyone is denied ("index" against
// noindex), it is made to deny it, since some engines let a permission win.
// Elements without content, those that hold an ACAP permission ("ACAP
// allow-index") or declare the encoding too, those in the body, and those in
// text, comments, noscript and templates are left alone.
//
// Every other byte stays. A page that says already what the policy says passes
// untouched, with its Content-Length, ETag and Last-Modified.
//
// # Which pages
//
// Responses to GET and HEAD with status 200 (Options.Statuses adds others),
// media type text/html or application/xhtml+xml (or none, where net/http would
// find HTML), in an encoding based on ASCII, without Content-Range, without
// Cache-Control: no-transform, without Incremental: ?1, and in a content coding
// that is understood. The page must show that it is one, and no fragment
// (Options.Fragments).
//
// The answer to HEAD cannot know whether the page says everything already; it
// has the header of a changed page, without Content-Length.
//
// # Streaming
//
// The header and the page's bytes are held until the head's end is known:
// usually within the handler's first Write. At most Options.MaxHead bytes are
// held; of a longer head, elements further down stay as they are (readers add
// them up with ours; in mode Replace they remain), and a page whose head has
// not even begun passes untouched. A flush inside the head has to wait; one
// behind </head> does not: an element between </head> and <body>, which the
// HTML standard puts back into the head, then is not looked at.
//
// # Content codings
//
// A page in gzip, deflate, zstd or br stays in that coding. Its Content-Length
// goes, since it is not known before the end. Until the head is known the body
// is held as it came; a page that does not change, and a body that is not what
// its coding says, pass as they came.
//
// In gzip and deflate the stream itself is changed: its bits are copied, but for
// what is put in and taken out, distances that reach across a change are
// corrected, and so is the checksum, by arithmetic. A body that is broken, or not
// whole, or has something behind its end, comes out just so; if its head goes on
// in a further member of gzip it passes untouched, since clients differ on
// whether that belongs to it. zstd and br are unpacked and packed again, at their
// fastest levels; a body that turns out to be broken after it has begun to go out
// breaks off, with an error from Write or Close.
//
// Memory is bounded whatever the text unpacks to: MaxHead twice, some 200 KiB
// for a deflate stream, and for zstd and br the window that the body asks for,
// at most 8 and 16 MiB.
//
// # How the head is found
//
// As the HTML standard's tree construction does it with scripting enabled;
// x/net/html is the reference in the tests. The head is given up at tables,
// select and foreign content inside a template, and at a numeric character
// reference of more than 64 bytes: elements behind them stay as they are. A
// page that ends inside a tag or comment before its head began passes
// untouched. XHTML is read as XML; with an internal DTD subset, or a prefix on
// its html element, it passes untouched.
package metainject
