package family

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Resource is a resource of a page (endpoints/contract/pages.md), as far as a client has to know of it before it
// is there.
type Resource struct {
	// Initiator is the number of the resource that leads to it, from 0; nil: the page begins with it.
	Initiator *uint64 `json:"initiator"`
	// FoundAfterBytes of the initiator must have come before it is found; nil: all, with their end.
	FoundAfterBytes *uint64 `json:"found_after_bytes"`
	WaitMS          uint64  `json:"wait_ms"` // from then until it is asked for
	Urgency         uint64  `json:"urgency"` // the lowest first (RFC 9218, section 4.1)
	Incremental     bool    `json:"incremental"`
}

// UnmarshalJSON refuses a resource that lacks what may not be null.
func (r *Resource) UnmarshalJSON(text []byte) error {
	var given map[string]any
	if err := json.Unmarshal(text, &given); err != nil {
		return err
	}
	for _, key := range []string{"wait_ms", "urgency", "incremental"} {
		if given[key] == nil {
			return fmt.Errorf("a resource has no %s", key)
		}
	}
	type plain Resource
	return json.Unmarshal(text, (*plain)(r))
}

// priority is the value of its header of that name (RFC 9218, section 5).
func (r *Resource) priority() string {
	if r.Incremental {
		return fmt.Sprintf("u=%d, i", r.Urgency)
	}
	return fmt.Sprintf("u=%d", r.Urgency)
}

// discovery is which resources of a page are found, and which of those is asked for next. Times are in ns.
type discovery struct {
	resources []Resource
	hidden    [][]int // by initiator, what it leads to and was not found yet
	waiting   []dated // found, and to be asked for at a time
	ready     []int   // to be asked for
	underWay  int     // asked for, and not ended
}

// dated is the number of a resource, and when it is to be asked for.
type dated struct {
	due    uint64
	number int
}

func newDiscovery(resources []Resource) *discovery {
	d := &discovery{resources: resources, hidden: make([][]int, len(resources))}
	for number, r := range resources {
		if r.Initiator != nil {
			d.hidden[*r.Initiator] = append(d.hidden[*r.Initiator], number)
		}
	}
	return d
}

// start finds what has no initiator.
func (d *discovery) start(now uint64) {
	for number, r := range d.resources {
		if r.Initiator == nil {
			d.find(now, number)
		}
	}
}

// ask returns the next resource to be asked for, if there is one: it is under way then.
func (d *discovery) ask(now uint64) (number int, found bool) {
	if !d.anyReady(now) {
		return 0, false
	}
	number = slices.MinFunc(d.ready, func(a, b int) int {
		return cmp.Or(cmp.Compare(d.resources[a].Urgency, d.resources[b].Urgency), cmp.Compare(a, b))
	})
	d.ready = slices.DeleteFunc(d.ready, func(it int) bool { return it == number })
	d.underWay++
	return number, true
}

// anyReady is whether any is to be asked for as soon as that can be.
func (d *discovery) anyReady(now uint64) bool {
	d.waiting = slices.DeleteFunc(d.waiting, func(it dated) bool {
		if it.due > now {
			return false
		}
		d.ready = append(d.ready, it.number)
		return true
	})
	return len(d.ready) > 0
}

// arrived counts the bytes of a resource that have arrived.
func (d *discovery) arrived(now uint64, number int, bytes uint64) {
	d.hidden[number] = slices.DeleteFunc(d.hidden[number], func(it int) bool {
		after := d.resources[it].FoundAfterBytes
		if after == nil || *after > bytes {
			return false
		}
		d.find(now, it)
		return true
	})
}

// ended says that a resource has come to its end, whole or not: one that is not leads to nothing more.
func (d *discovery) ended(now uint64, number int, whole bool) {
	d.underWay--
	hidden := d.hidden[number]
	d.hidden[number] = nil
	if whole {
		for _, it := range hidden {
			d.find(now, it)
		}
	}
}

// nextWake is when there is more to be asked for, though nothing comes; false: never.
func (d *discovery) nextWake() (uint64, bool) {
	if len(d.waiting) == 0 {
		return 0, false
	}
	first := slices.MinFunc(d.waiting, func(a, b dated) int { return cmp.Compare(a.due, b.due) })
	return first.due, true
}

// done is whether all that was found has ended.
func (d *discovery) done() bool {
	return d.underWay == 0 && len(d.ready) == 0 && len(d.waiting) == 0
}

func (d *discovery) find(now uint64, number int) {
	wait := time.Duration(d.resources[number].WaitMS) * time.Millisecond
	d.waiting = append(d.waiting, dated{now + uint64(wait), number})
}
