"""ML-KEM-768 encapsulation with a message that is given, which no library at hand takes from outside.

Source: FIPS 203, whose names and algorithm numbers are used. Polynomials are lists of 256 integers modulo Q.
Only the side that encapsulates, a server, is here; keys and decapsulation are those of `cryptography`.
"""

from __future__ import annotations

import hashlib

Q, N, K = 3329, 256, 3
ETA = 2  # both of ML-KEM-768
DU, DV = 10, 4  # bits of a compressed coefficient
SEED_BYTES, MESSAGE_BYTES, RHO_BYTES = 64, 32, 32
POLYNOMIAL_BYTES = 384  # 256 coefficients of 12 bits
CIPHERTEXT_BYTES = 32 * (DU * K + DV)

Polynomial = list[int]


def _bit_reversed(number: int) -> int:
    return int(f"{number:07b}"[::-1], 2)


# Powers of 17, the 256th root of unity (FIPS 203 appendix A).
ZETAS = [pow(17, _bit_reversed(i), Q) for i in range(128)]
GAMMAS = [pow(17, 2 * _bit_reversed(i) + 1, Q) for i in range(128)]


def encapsulate(key: bytes, message: bytes) -> tuple[bytes, bytes]:
    """Shared secret and ciphertext for an encapsulation key (algorithm 17); ValueError for a key of another
    length or with a coefficient that is not reduced (section 7.2).
    """
    if len(key) != K * POLYNOMIAL_BYTES + RHO_BYTES:
        raise ValueError(f"an ML-KEM-768 key of {len(key)} bytes")
    both = hashlib.sha3_512(message + hashlib.sha3_256(key).digest()).digest()
    return both[:32], _encrypt(key, message, both[32:])


def _encrypt(key: bytes, message: bytes, coins: bytes) -> bytes:
    """K-PKE.Encrypt (algorithm 14)."""
    parts = [key[i * POLYNOMIAL_BYTES : (i + 1) * POLYNOMIAL_BYTES] for i in range(K)]
    t = [_decode(part, 12) for part in parts]
    if any(coefficient >= Q for polynomial in t for coefficient in polynomial):
        raise ValueError("an ML-KEM-768 key with a coefficient that is not reduced")
    rho = key[K * POLYNOMIAL_BYTES :]
    noise = [_sample_cbd(hashlib.shake_256(coins + bytes([n])).digest(64 * ETA)) for n in range(2 * K + 1)]
    y = [_ntt(polynomial) for polynomial in noise[:K]]
    ciphertext = b""
    for i in range(K):
        # The matrix is used transposed: row i of it is column i.
        row = [_sample_ntt(rho + bytes([i, j])) for j in range(K)]
        u = _add(_inverse_ntt(_product(row, y)), noise[K + i])
        ciphertext += _encode([_compress(c, DU) for c in u], DU)
    decompressed = [(Q + 1) // 2 * bit for bit in _decode(message, 1)]
    v = _add(_add(_inverse_ntt(_product(t, y)), noise[2 * K]), decompressed)
    return ciphertext + _encode([_compress(c, DV) for c in v], DV)


def _compress(coefficient: int, bits: int) -> int:
    """Section 4.2.1, rounding half up."""
    return (((coefficient << (bits + 1)) + Q) // (2 * Q)) % (1 << bits)


def _encode(polynomial: Polynomial, bits: int) -> bytes:
    """ByteEncode (algorithm 5)."""
    number = 0
    for coefficient in reversed(polynomial):
        number = number << bits | coefficient
    return number.to_bytes(N * bits // 8, "little")


def _decode(data: bytes, bits: int) -> Polynomial:
    """ByteDecode (algorithm 6), without reduction."""
    number, mask = int.from_bytes(data, "little"), (1 << bits) - 1
    return [number >> (i * bits) & mask for i in range(N)]


def _sample_ntt(seed: bytes) -> Polynomial:
    """SampleNTT (algorithm 7). Of 560 values, of which 13 in 16 do, 256 are wanted: enough but for a chance
    below 2^-128, and a key of which it is not has no reply.
    """
    data = hashlib.shake_128(seed).digest(840)
    number = int.from_bytes(data, "little")
    values = [value for i in range(560) if (value := number >> (i * 12) & 0xFFF) < Q]
    if len(values) < N:
        raise ValueError("an ML-KEM-768 key whose matrix cannot be sampled")
    return values[:N]


def _sample_cbd(data: bytes) -> Polynomial:
    """SamplePolyCBD (algorithm 8)."""
    number = int.from_bytes(data, "little")
    pairs = [number >> (2 * i) & 3 for i in range(ETA * N)]
    return [(pairs[2 * i].bit_count() - pairs[2 * i + 1].bit_count()) % Q for i in range(N)]


def _ntt(polynomial: Polynomial) -> Polynomial:
    """Algorithm 9."""
    f, i, length = list(polynomial), 1, 128
    while length >= 2:
        for start in range(0, N, 2 * length):
            for j in range(start, start + length):
                t = ZETAS[i] * f[j + length] % Q
                f[j + length] = (f[j] - t) % Q
                f[j] = (f[j] + t) % Q
            i += 1
        length //= 2
    return f


def _inverse_ntt(polynomial: Polynomial) -> Polynomial:
    """Algorithm 10."""
    f, i, length = list(polynomial), 127, 2
    while length <= 128:
        for start in range(0, N, 2 * length):
            for j in range(start, start + length):
                t = f[j]
                f[j] = (t + f[j + length]) % Q
                f[j + length] = ZETAS[i] * (f[j + length] - t) % Q
            i -= 1
        length *= 2
    return [coefficient * 3303 % Q for coefficient in f]


def _product(left: list[Polynomial], right: list[Polynomial]) -> Polynomial:
    """The inner product of two vectors in the NTT domain (algorithms 11 and 12)."""
    total = [0] * N
    for a, b in zip(left, right, strict=True):
        for i, gamma in enumerate(GAMMAS):
            a0, a1, b0, b1 = a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]
            total[2 * i] += a0 * b0 + a1 * b1 % Q * gamma
            total[2 * i + 1] += a0 * b1 + a1 * b0
    return [coefficient % Q for coefficient in total]


def _add(left: Polynomial, right: Polynomial) -> Polynomial:
    return [(a + b) % Q for a, b in zip(left, right, strict=True)]
