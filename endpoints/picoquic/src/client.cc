// The client of hq-interop: asks for everything at once, or for the first request and then, over a second connection, for the
// others; stores the replies, or in `upload` sends the files; closes.
#include <algorithm>
#include <deque>

#include "application.h"
#include "fail.h"
#include "files.h"
#include "quic.h"

struct Request {
    std::string path;
    uint64_t stream = 0, bytes = 0, first_byte_at = NEVER, last_byte_at = NEVER;
    bool ended = false;
    File file;             // that the reply is stored in, or that is sent
    std::string question;  // of PUT: what of it is still to be sent, before the file
    uint64_t left = 0;     // of the file that is sent
};

class Client : public Application {
public:
    Client(const Setup &setup, Quic &quic);
    void start() override;
    int handle(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
               picoquic_call_back_event_t event, void *stream_context) override;
    void act() override;
    bool is_done() const override;
    Report finish() override;

private:
    void ask_up_to(size_t end);
    void close();
    void end(Request &request);
    void receive(Request &request, const uint8_t *data, size_t size, bool is_end);
    int provide(Request &request, void *buffer, size_t room);

    const Setup &setup_;
    Quic &quic_;
    picoquic_cnx_t *connection_ = nullptr;
    std::deque<Request> requests_;
    size_t asked_ = 0, ended_ = 0;
    bool is_second_, is_closing_ = false;  // is_second_: there is no further connection
    uint64_t handshake_at_ = NEVER;
    std::string error_;
};

Client::Client(const Setup &setup, Quic &quic) : setup_(setup), quic_(quic), is_second_(!setup.has_two_connections()) {
    for (const std::string &path : setup.paths) {
        Request &request = requests_.emplace_back();
        request.path = path;
        if (setup.testcase != TestCase::upload) continue;
        request.file = open_for_reading(setup.www, path, request.left);
        if (!request.file) fail("requests: %s names no file within %s", path.c_str(), setup.www.c_str());
        request.question = "PUT " + path + "\r\n";
    }
}

void Client::start() {
    connection_ = quic_.connect();
    ask_up_to(is_second_ ? requests_.size() : 1);
}

// Streams that may not be opened yet wait in picoquic.
void Client::ask_up_to(size_t end) {
    for (size_t first = asked_; asked_ < end; asked_++) {
        Request &request = requests_[asked_];
        request.stream = 4 * (asked_ - first);
        if (setup_.testcase == TestCase::upload) {
            picoquic_mark_active_stream(connection_, request.stream, 1, &request);
        } else {
            std::string question = "GET " + request.path + "\r\n";
            picoquic_add_to_stream_with_ctx(connection_, request.stream, reinterpret_cast<const uint8_t *>(question.data()),
                                            question.size(), 1, &request);
        }
    }
}

void Client::close() {
    is_closing_ = true;
    picoquic_close(connection_, 0);
}

void Client::act() {
    if (!is_second_ && ended_ == 1 && quic_.has_ticket()) {
        close();
        is_second_ = true;
        is_closing_ = false;
        connection_ = quic_.connect();
        // Not before the connection has started: now what the ticket remembers of limits holds for new streams.
        if (setup_.testcase == TestCase::zerortt) ask_up_to(requests_.size());
        if (ended_ == requests_.size()) close();
    }
    picoquic_state_enum state = picoquic_get_cnx_state(connection_);
    bool is_open = state >= picoquic_state_client_almost_ready && state < picoquic_state_disconnecting;
    if (is_second_ && is_open && !is_closing_) ask_up_to(requests_.size());
}

void Client::end(Request &request) {
    if (request.ended) return;
    request.ended = true;
    close_file(request.file);
    // The first of two connections is closed when there is a ticket, too.
    if (++ended_ == requests_.size() && is_second_ && !is_closing_) close();
}

void Client::receive(Request &request, const uint8_t *data, size_t size, bool is_end) {
    if (setup_.testcase != TestCase::upload) {
        if (!request.file) request.file = open_for_writing(setup_.downloads, request.path);
        if (!request.file) fail("%s cannot be stored in %s", request.path.c_str(), setup_.downloads.c_str());
        write_file(request.file, data, size);
        request.bytes += size;
        if (size && request.first_byte_at == NEVER) request.first_byte_at = quic_.now();
        if (size) request.last_byte_at = quic_.now();
    } else if (is_end) {
        request.last_byte_at = quic_.now();
    }
    if (is_end) end(request);
}

// Hands picoquic what of the question and the file fits.
int Client::provide(Request &request, void *buffer, size_t room) {
    size_t head = std::min(room, request.question.size());
    size_t body = std::min<uint64_t>(room - head, request.left);
    bool is_last = head == request.question.size() && body == request.left;
    uint8_t *to = picoquic_provide_stream_data_buffer(buffer, head + body, is_last, !is_last);
    if (!to) return -1;
    request.question.copy(reinterpret_cast<char *>(to), head);
    request.question.erase(0, head);
    if (fread(to + head, 1, body, request.file.get()) != body) fail("%s became shorter", request.path.c_str());
    if (body && request.first_byte_at == NEVER) request.first_byte_at = quic_.now();
    request.left -= body;
    request.bytes += body;
    return 0;
}

int Client::handle(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
                   picoquic_call_back_event_t event, void *stream_context) {
    Request *request = static_cast<Request *>(stream_context);
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        if (request && !request->ended) receive(*request, data, size, event == picoquic_callback_stream_fin);
        break;
    case picoquic_callback_prepare_to_send:
        return request && !request->ended ? provide(*request, data, size) : -1;
    case picoquic_callback_stop_sending:
        picoquic_reset_stream(connection, stream, 0);
        [[fallthrough]];
    case picoquic_callback_stream_reset:
        if (!request || request->ended) break;
        if (error_.empty()) error_ = request->path + ": refused by the server";
        end(*request);
        break;
    case picoquic_callback_almost_ready:
    case picoquic_callback_ready:
        if (handshake_at_ == NEVER) handshake_at_ = quic_.now();
        break;
    case picoquic_callback_stateless_reset:
    case picoquic_callback_close:
    case picoquic_callback_application_close:
        if (connection != connection_ || is_closing_ || !error_.empty()) break;
        error_ = reason_of_close(connection, event);
        if (error_.empty()) error_ = "closed by peer: 0x0, before all requests had ended";
        break;
    default:
        break;
    }
    return 0;
}

bool Client::is_done() const {
    if (!is_second_ && error_.empty()) return false;
    return picoquic_get_cnx_state(connection_) >= picoquic_state_closing_received;
}

Report Client::finish() {
    Report report;
    report.handshake_at = handshake_at_;
    report.error = error_;
    for (Request &one : requests_) {
        close_file(one.file);
        report.requests.push_back({one.path, one.bytes, one.first_byte_at, one.last_byte_at});
    }
    return report;
}

std::unique_ptr<Application> make_client(const Setup &setup, Quic &quic) { return std::make_unique<Client>(setup, quic); }
