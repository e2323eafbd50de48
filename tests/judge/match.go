package judge

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"strings"
)

// matchItems are the alternatives of a policy's `match`.
type matchItems []matchItem

type matchItem struct {
	Path    *textMatch           `json:"path"`
	Headers map[string]textMatch `json:"headers"`
	Query   map[string]textMatch `json:"query"`
	Method  string               `json:"method"`
}

type textMatch struct {
	Exact   *string `json:"exact"`
	Prefix  *string `json:"prefix"`
	Regex   *string `json:"regex"`
	Present *bool   `json:"present"`
}

func (m *matchItems) UnmarshalJSON(data []byte) error {
	var one matchItem
	if strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		*m = matchItems{one}
		return nil
	}
	return json.Unmarshal(data, (*[]matchItem)(m))
}

// admits tells whether a request matches one of the alternatives.
func (m matchItems) admits(r Request) (bool, error) {
	for _, item := range m {
		if ok, err := item.admits(r); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (i matchItem) admits(r Request) (bool, error) {
	if i.Method != "" && i.Method != r.Method {
		return false, nil
	}
	path, _, _ := strings.Cut(r.Path, "?")
	if i.Path != nil {
		if ok, err := i.Path.admits(path, true); err != nil || !ok {
			return false, err
		}
	}
	for name, m := range i.Headers {
		value, present := r.Headers[strings.ToLower(name)]
		if ok, err := m.admits(value, present); err != nil || !ok {
			return false, err
		}
	}
	for name, m := range i.Query {
		value, present := r.Query[name]
		if ok, err := m.admits(value, present); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func (m textMatch) admits(value string, present bool) (bool, error) {
	switch {
	case !present:
		return false, nil
	case m.Exact != nil:
		return value == *m.Exact, nil
	case m.Prefix != nil:
		return strings.HasPrefix(value, *m.Prefix), nil
	case m.Regex != nil:
		return fullMatch(*m.Regex, value)
	}
	return true, nil
}

// sample makes a request that fits an alternative.
func (i matchItem) sample(host, method string) (Request, error) {
	r := Request{Host: host, Method: method, Path: "/", Headers: map[string]string{}, Query: map[string]string{}}
	if i.Method != "" {
		r.Method = i.Method
	}
	if i.Path != nil {
		path, err := i.Path.sample()
		if err != nil {
			return r, err
		}
		r.Path = path
	}
	for name, m := range i.Headers {
		value, err := m.sample()
		if err != nil {
			return r, err
		}
		r.Headers[strings.ToLower(name)] = value
	}
	for name, m := range i.Query {
		value, err := m.sample()
		if err != nil {
			return r, err
		}
		r.Query[name] = value
	}
	return r, nil
}

func (m textMatch) sample() (string, error) {
	switch {
	case m.Exact != nil:
		return *m.Exact, nil
	case m.Prefix != nil:
		return *m.Prefix + "x", nil
	case m.Regex != nil:
		return regexSample(*m.Regex)
	}
	return "any", nil
}

// regexSample builds the shortest text that a pattern's first alternatives give, and checks it.
func regexSample(pattern string) (string, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	writeSample(&b, tree)
	if ok, err := fullMatch(pattern, b.String()); err != nil || !ok {
		return "", fmt.Errorf("no sample found for the pattern %q (%v)", pattern, err)
	}
	return b.String(), nil
}

func writeSample(b *strings.Builder, tree *syntax.Regexp) {
	switch tree.Op {
	case syntax.OpLiteral:
		b.WriteString(string(tree.Rune))
	case syntax.OpCharClass:
		r := tree.Rune[0]
		for i := 0; i+1 < len(tree.Rune); i += 2 {
			// A printable member, if there is one: a class such as [^/] begins with a control character.
			if lo, hi := max(tree.Rune[i], 'a'), min(tree.Rune[i+1], 'z'); lo <= hi {
				r = lo
				break
			}
		}
		b.WriteRune(r)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpCapture, syntax.OpPlus:
		writeSample(b, tree.Sub[0])
	case syntax.OpRepeat:
		for range tree.Min {
			writeSample(b, tree.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			writeSample(b, sub)
		}
	case syntax.OpAlternate:
		writeSample(b, tree.Sub[0])
	}
}

// text is a form in which equal matches are equal.
func (m matchItems) text() string {
	encoded, err := json.Marshal([]matchItem(m))
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
