// The server of hq-interop: answers `GET /path` with the file, or in `upload` stores the file of `PUT /path` and answers with
// FIN; or with RESET_STREAM.
#include <algorithm>
#include <map>

#include "application.h"
#include "fail.h"
#include "files.h"
#include "quic.h"

static const size_t LONGEST_QUESTION = 4096;
static const uint64_t REFUSED = 1;

// A stream of a client's.
struct Exchange {
    std::string question;
    bool understood = false;  // or refused
    File file;                // the answer, or the upload
    uint64_t left = 0;        // of the answer
};

class Server : public Application {
public:
    Server(const Setup &setup, Quic &quic) : setup_(setup), quic_(quic) {}
    void start() override {}
    void act() override {}
    int handle(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
               picoquic_call_back_event_t event, void *stream_context) override;
    bool is_done() const override;
    Report finish() override;

private:
    Exchange *begin(picoquic_cnx_t *connection, uint64_t stream);
    int receive(picoquic_cnx_t *connection, uint64_t stream, Exchange &exchange, const uint8_t *data, size_t size,
                bool is_end);
    bool understand(Exchange &exchange, const std::string &line);
    int provide(Exchange &exchange, void *buffer, size_t room);

    const Setup &setup_;
    Quic &quic_;
    std::map<Exchange *, std::unique_ptr<Exchange>> exchanges_;
    std::string error_;
};

Exchange *Server::begin(picoquic_cnx_t *connection, uint64_t stream) {
    auto exchange = std::make_unique<Exchange>();
    Exchange *raw = exchange.get();
    if (picoquic_set_app_stream_ctx(connection, stream, raw) != 0) return nullptr;
    exchanges_[raw] = std::move(exchange);
    return raw;
}

// Opens the file that the question names; false if it is to be refused.
bool Server::understand(Exchange &exchange, const std::string &line) {
    bool uploads = setup_.testcase == TestCase::upload;
    if (line.compare(0, 4, uploads ? "PUT " : "GET ") != 0) return false;
    std::string path = line.substr(4);
    exchange.file = uploads ? open_for_writing(setup_.downloads, path) : open_for_reading(setup_.www, path, exchange.left);
    return exchange.file != nullptr;
}

static int refuse(picoquic_cnx_t *connection, uint64_t stream, Exchange &exchange) {
    exchange.understood = true;
    picoquic_reset_stream(connection, stream, REFUSED);
    picoquic_stop_sending(connection, stream, REFUSED);
    return 0;
}

int Server::receive(picoquic_cnx_t *connection, uint64_t stream, Exchange &exchange, const uint8_t *data, size_t size,
                    bool is_end) {
    bool uploads = setup_.testcase == TestCase::upload;
    if (!exchange.understood) {
        const uint8_t *newline = std::find(data, data + size, '\n');
        bool is_whole = newline != data + size;
        exchange.question.append(data, newline);
        if (exchange.question.size() > LONGEST_QUESTION || (is_end && !is_whole)) return refuse(connection, stream, exchange);
        if (!is_whole) return 0;
        if (!exchange.question.empty() && exchange.question.back() == '\r') exchange.question.pop_back();
        if (!understand(exchange, exchange.question)) return refuse(connection, stream, exchange);
        exchange.understood = true;
        size -= static_cast<size_t>(newline + 1 - data);
        data = newline + 1;
        if (!uploads) return picoquic_mark_active_stream(connection, stream, 1, &exchange);
    }
    if (!uploads || !exchange.file) return 0;
    write_file(exchange.file, data, size);
    if (!is_end) return 0;
    close_file(exchange.file);
    return picoquic_add_to_stream_with_ctx(connection, stream, nullptr, 0, 1, &exchange);
}

// Hands picoquic what of the answer fits.
int Server::provide(Exchange &exchange, void *buffer, size_t room) {
    size_t size = std::min<uint64_t>(room, exchange.left);
    bool is_last = size == exchange.left;
    uint8_t *to = picoquic_provide_stream_data_buffer(buffer, size, is_last, !is_last);
    if (!to) return -1;
    if (fread(to, 1, size, exchange.file.get()) != size) fail("a file of www became shorter");
    exchange.left -= size;
    if (is_last) exchange.file.reset();
    return 0;
}

int Server::handle(picoquic_cnx_t *connection, uint64_t stream, uint8_t *data, size_t size,
                   picoquic_call_back_event_t event, void *stream_context) {
    Exchange *exchange = static_cast<Exchange *>(stream_context);
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        if ((stream & 3) != 0) break;  // no request comes on other streams than a client's, of both directions
        if (!exchange) exchange = begin(connection, stream);
        return exchange ? receive(connection, stream, *exchange, data, size, event == picoquic_callback_stream_fin) : -1;
    case picoquic_callback_prepare_to_send:
        return exchange && exchange->file ? provide(*exchange, data, size) : -1;
    case picoquic_callback_stop_sending:
        picoquic_reset_stream(connection, stream, 0);
        [[fallthrough]];
    case picoquic_callback_stream_reset:
        if (exchange) exchange->file.reset();
        break;
    case picoquic_callback_stream_released:
        exchanges_.erase(exchange);
        break;
    case picoquic_callback_stateless_reset:
    case picoquic_callback_close:
    case picoquic_callback_application_close:
        if (error_.empty()) error_ = reason_of_close(connection, event);
        break;
    default:
        break;
    }
    return 0;
}

bool Server::is_done() const {
    for (picoquic_cnx_t *one = picoquic_get_first_cnx(quic_.context()); one; one = picoquic_get_next_cnx(one)) {
        if (picoquic_get_cnx_state(one) < picoquic_state_closing_received) return false;
    }
    return quic_.had_connections();
}

Report Server::finish() {
    for (auto &[raw, exchange] : exchanges_) close_file(exchange->file);
    Report report;
    report.error = error_;
    return report;
}

std::unique_ptr<Application> make_server(const Setup &setup, Quic &quic) { return std::make_unique<Server>(setup, quic); }
