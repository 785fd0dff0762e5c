package orca

import "strconv"

// Reason says what is wrong with a report, as a small number to count by. 0 is no reason. It is
// an error itself, so that errors.Is(err, orca.Negative) asks whether an [Error] has it.
type Reason uint8

// The reasons to drop a report.
const (
	UnknownFormat  Reason = iota + 1 // neither TEXT, JSON nor BIN
	MoreThanOne                      // several header lines
	TooLong                          // more than MaxBytes
	TooManyEntries                   // more than MaxEntries
	Empty                            // a binary header without anything in it
	BadBase64                        // not of the standard alphabet
	Malformed                        // not a message
	BadEntry                         // no separator, or no value
	UnknownKey                       // in text; the message's unknown fields are ignored
	BadKey                           // a name that is empty or not UTF-8
	Duplicate                        // the same key twice
	BadNumber                        // not a decimal number, or beyond float64
	NotFinite                        // NaN or an infinity
	Negative                         // where only 0 and more makes sense
	BadJSON                          // malformed, or cut off
	NotAnObject                      // JSON of another kind

	// Reasons is above every Reason, for arrays of counters.
	Reasons
)

var reasonTexts = [...]string{
	UnknownFormat: "report has an unsupported format, want TEXT, JSON or BIN", MoreThanOne: "more than one report, want one",
	TooLong:        "report is too long, want at most " + strconv.Itoa(MaxBytes) + " bytes",
	TooManyEntries: "report has too many names, want at most " + strconv.Itoa(MaxEntries),
	Empty:          "report is empty, want a message", BadBase64: "report is not base64", Malformed: "report is malformed, want a message",
	BadEntry: "bad entry, want key=number", UnknownKey: "unsupported metric", BadKey: "bad map key, want UTF-8 and not empty",
	Duplicate: "duplicate key", BadNumber: "bad number, want a decimal one", NotFinite: "number is not finite", Negative: "number is negative, want 0 or more",
	BadJSON: "report is malformed JSON", NotAnObject: "report is JSON that is no object of numbers",
}

// Error returns the reason in words.
func (r Reason) Error() string {
	if r == 0 || int(r) >= len(reasonTexts) {
		return "orca: reason " + strconv.Itoa(int(r))
	}
	return "orca: " + reasonTexts[r]
}

// Error is a reason with the place.
type Error struct {
	// Reason is what is wrong.
	Reason Reason
	// Key is what it is wrong with, as in text, such as "named_metrics.a"; empty where it is not
	// about one.
	Key string
	// Value is the number that is wrong, where it is about one.
	Value float64
}

// Error names the reason, and the key, shortened if it is long, with its value.
func (e *Error) Error() string {
	text := e.Reason.Error()
	if e.Key == "" {
		return text
	}
	key := e.Key
	if len(key) > 64 {
		key = key[:64] + "..."
	}
	text += ": " + strconv.Quote(key)
	if e.Reason == NotFinite || e.Reason == Negative {
		text += " is " + strconv.FormatFloat(e.Value, 'g', -1, 64)
	}
	return text
}

// Unwrap returns the Reason.
func (e *Error) Unwrap() error { return e.Reason }
