package bentpipe;

import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.SocketException;

/**
 * A socket that hands out nothing before the thread that connects waits for the handshake.
 *
 * <p>kwik 0.10.8 and 0.10.9 send the ClientHello, and then write the early data and set the idle timer, in the thread
 * that connects. A server's answer that comes in between, in the receiver's thread, finds the timer enabled and not
 * yet there: a NullPointerException in IdleTimer.setIdleTimeout ends the handshake without a word, and the connection
 * stands still until its timeout. Or it sets what the answer said of the early data back to "requested".
 */
final class WaitingSocket extends DatagramSocket {
    private final Thread connecting;
    private boolean open;

    WaitingSocket(Thread connecting) throws SocketException {
        this.connecting = connecting;
    }

    @Override
    public void receive(DatagramPacket packet) throws IOException {
        super.receive(packet);
        while (!open && !isClosed()) {
            pause();
            // The one place where that thread waits for a limited time is the one for the end of the handshake.
            open = connecting.getState() == Thread.State.TIMED_WAITING;
        }
    }

    private static void pause() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
