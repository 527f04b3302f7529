package family

import (
	"fmt"
	"sync"
	"time"
)

// statusOK is the status of an answer that is the resource (RFC 9110, section 15.3.1).
const statusOK = 200

// mostWaitMS and mostUrgency are the most that a resource has.
const (
	mostWaitMS  = 3_600_000
	mostUrgency = 7
)

// checkPage reports the flaw of a client's page, in the words of Bentpipe's other programs.
func (h *Hello) checkPage() error {
	count, problem := len(h.Page), ""
	switch {
	case h.Testcase != pageTestcase && count == 0:
		return nil
	case h.Testcase != pageTestcase:
		problem = fmt.Sprintf("there is none in test case %q", h.Testcase)
	case count != len(h.Requests):
		problem = fmt.Sprintf("there must be one for each of %d requests", len(h.Requests))
	default:
		for number := range h.Page {
			if problem = h.Page[number].problem(uint64(number)); problem != "" {
				problem = fmt.Sprintf("resource %d: %s", number, problem)
				break
			}
		}
	}
	if problem == "" {
		return nil
	}
	return fmt.Errorf("page %q: %s", fmt.Sprintf("%d resources", count), problem)
}

func (r *Resource) problem(number uint64) string {
	switch {
	case r.Initiator != nil && *r.Initiator >= number:
		return "it must stand behind its initiator"
	case r.Urgency > mostUrgency:
		return fmt.Sprintf("urgency: it is %d at most", mostUrgency)
	case r.WaitMS > mostWaitMS:
		return fmt.Sprintf("wait_ms: it is %d at most", mostWaitMS)
	}
	return ""
}

// browserHeaders are the headers that a browser sends with every request, and priority, as names and values.
func browserHeaders(priority string) [][2]string {
	return [][2]string{
		{"user-agent", "Mozilla/5.0 (X11; Linux x86_64) Bentpipe/1.0"},
		{"accept", "*/*"},
		{"accept-encoding", "identity"},
		{"accept-language", "en-US,en;q=0.9"},
		{"priority", priority},
	}
}

// HTTPStream is a stream of HTTP. What is read from it is the content of the answer.
type HTTPStream interface {
	Stream
	// Get sends the request for a path, with headers as names and values.
	Get(path string, headers [][2]string) error
	// Status waits for the head of the answer.
	Status() (int, error)
}

// page is the load of a page.
type page struct {
	now     func() uint64
	changed chan struct{} // something was found, or has ended

	mu sync.Mutex
	*discovery
}

func newPage(env *Environment) *page {
	return &page{now: env.Now, changed: make(chan struct{}, 1), discovery: newDiscovery(env.Hello.Page)}
}

// tell changes what is known, and wakes who waits for that.
func (p *page) tell(change func(now uint64)) {
	p.mu.Lock()
	change(p.now())
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// wait waits until there is a resource to be asked for; false if there will be none, or if the connection is gone.
func (p *page) wait(gone <-chan struct{}) bool {
	for {
		ready, done, wake := p.look()
		if ready || done {
			return ready
		}
		select {
		case <-p.changed:
		case <-wake:
		case <-gone:
			return false
		}
	}
}

// look says whether there is a resource to be asked for, whether all has ended, and otherwise when to look again.
func (p *page) look() (ready, done bool, wake <-chan time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if due, waits := p.nextWake(); waits && due > now {
		wake = time.After(time.Duration(due - now))
	}
	return p.anyReady(now), p.discovery.done(), wake
}

// take returns the resource that is to be asked for now. There must be one.
func (p *page) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, _ := p.ask(p.now())
	return number
}

// Load asks for the resources of the page, each on a separate stream, in order of urgency and as they are found. It
// returns when all that was found has ended, or when the connection is gone. Open waits until the peer allows another
// stream.
func (c *Client) Load(open func() (HTTPStream, error), gone <-chan struct{}) {
	var answered sync.WaitGroup
	defer answered.Wait()
	for c.page.wait(gone) {
		stream, err := open()
		if err != nil {
			return
		}
		// Not before: what is found while no stream may be opened can be more urgent.
		number := c.page.take()
		r := c.requests[number]
		r.answer.AskedNS = new(c.Now())
		if r.Err = stream.Get(r.answer.Path, browserHeaders(c.Hello.Page[number].priority())); r.Err != nil {
			c.page.tell(func(now uint64) { c.page.ended(now, number, false) })
			continue
		}
		stream.Finish()
		r.arrived = func(bytes uint64) { c.page.tell(func(now uint64) { c.page.arrived(now, number, bytes) }) }
		answered.Go(func() {
			r.load(stream)
			c.page.tell(func(now uint64) { c.page.ended(now, number, r.ended && r.Err == nil) })
		})
	}
}

// load receives the answer to its end. Its first byte is that of the head.
func (r *Request) load(stream HTTPStream) {
	status, err := stream.Status()
	if r.Err = err; err != nil {
		return
	}
	r.answer.FirstByteNS = new(r.now())
	if status != statusOK {
		stream.Refuse()
		r.Err = fmt.Errorf("status %d", status)
		return
	}
	r.exchange(stream)
	if r.ended && r.answer.LastByteNS == nil {
		r.answer.LastByteNS = new(r.now())
	}
}
