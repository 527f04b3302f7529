package family

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func resource(initiator, after int, waitMS, urgency uint64) Resource {
	r := Resource{WaitMS: waitMS, Urgency: urgency}
	if initiator >= 0 {
		r.Initiator = new(uint64(initiator))
	}
	if after >= 0 {
		r.FoundAfterBytes = new(uint64(after))
	}
	return r
}

// expectAsked asks for all that is to be asked for.
func expectAsked(t *testing.T, d *discovery, now uint64, want ...int) {
	t.Helper()
	var asked []int
	for number, found := d.ask(now); found; number, found = d.ask(now) {
		asked = append(asked, number)
	}
	if !slices.Equal(asked, want) {
		t.Errorf("at %d ns were asked for: %v, want %v", now, asked, want)
	}
}

func TestResourcesAreFoundAsTheirInitiatorsComeAndAskedForByUrgency(t *testing.T) {
	const ms = 1_000_000
	d := newDiscovery([]Resource{
		resource(-1, -1, 0, 0),
		resource(0, 100, 0, 3),
		resource(0, 100, 0, 1),
		resource(0, -1, 20, 0),
		resource(2, 0, 0, 3),
	})
	if !d.done() {
		t.Error("something was found before the start")
	}
	d.start(0)
	expectAsked(t, d, 0, 0)
	d.arrived(10*ms, 0, 99)
	expectAsked(t, d, 10*ms)
	d.arrived(11*ms, 0, 100)
	expectAsked(t, d, 11*ms, 2, 1)
	d.arrived(12*ms, 2, 1)
	expectAsked(t, d, 12*ms, 4)
	d.ended(13*ms, 0, true)
	if due, waits := d.nextWake(); !waits || due != 33*ms {
		t.Errorf("next wake %d, want %d", due, 33*ms)
	}
	expectAsked(t, d, 33*ms-1)
	expectAsked(t, d, 33*ms, 3)
	for _, number := range []int{1, 2, 3} {
		d.ended(40*ms, number, true)
		if d.done() {
			t.Errorf("done after resource %d", number)
		}
	}
	d.ended(41*ms, 4, false)
	if _, waits := d.nextWake(); !d.done() || waits {
		t.Error("not done when all has ended")
	}
}

func TestWhatFailedLeadsToNothingThatIsFoundAtItsEnd(t *testing.T) {
	d := newDiscovery([]Resource{
		resource(-1, -1, 0, 0),
		resource(0, 1, 0, 3),
		resource(0, 1, 0, 3),
		resource(1, -1, 0, 0),
		resource(0, -1, 0, 1),
	})
	d.start(0)
	expectAsked(t, d, 0, 0)
	d.arrived(0, 0, 7)
	if number, _ := d.ask(0); number != 1 {
		t.Errorf("asked for %d, want 1", number)
	}
	d.ended(0, 1, false)
	d.ended(0, 0, true)
	expectAsked(t, d, 0, 4, 2) // the last to be found is urgent
	d.ended(0, 2, true)
	d.ended(0, 4, true)
	if !d.done() {
		t.Error("not done when all has ended")
	}
}

func TestPagesThatCannotBe(t *testing.T) {
	const first = `{"initiator": null, "found_after_bytes": null, "wait_ms": 0, "urgency": 0, "incremental": true}`
	for name, c := range map[string]struct{ testcase, page, wrong string }{
		"behind":      {"page", `[` + first + `, {"initiator": 1, "wait_ms": 0, "urgency": 0, "incremental": false}]`, "resource 1: it must stand behind its initiator"},
		"urgency":     {"page", `[` + first + `, {"wait_ms": 0, "urgency": 8, "incremental": false}]`, "resource 1: urgency: it is 7 at most"},
		"wait":        {"page", `[` + first + `, {"wait_ms": 3600001, "urgency": 7, "incremental": false}]`, "resource 1: wait_ms: it is 3600000 at most"},
		"few":         {"page", `[` + first + `]`, "there must be one for each of 2 requests"},
		"none":        {"page", `null`, "there must be one for each of 2 requests"},
		"test case":   {"transfer", `[` + first + `, ` + first + `]`, `there is none in test case "transfer"`},
		"nothing":     {"page", `[` + first + `, null]`, "a resource has no wait_ms"},
		"key":         {"page", `[` + first + `, {"wait_ms": 0, "urgency": 1}]`, "a resource has no incremental"},
		"negative":    {"page", `[` + first + `, {"initiator": -1, "wait_ms": 0, "urgency": 1, "incremental": true}]`, "cannot unmarshal number -1"},
		"is all well": {"page", `[` + first + `, {"initiator": 0, "wait_ms": 3600000, "urgency": 7, "incremental": true, "more": 1}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := Hello{Testcase: c.testcase, Requests: []string{"https://server/a", "https://server/b"}}
			err := json.Unmarshal([]byte(c.page), &h.Page)
			if err == nil {
				err = h.checkPage()
			}
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("refused with %v, want %q", err, c.wrong)
			}
		})
	}
}
