// nvtune's device code as a program.
//   device fill FORMAT KIND A B SEED COUNT          the scalars to standard output
//   device compare FORMAT RELATIVE ABSOLUTE COUNT LANES
//       of COUNT elements, how many differ, the first scalar that does, and the bits of the share of the tolerance that
//       others take; those expected and those that came from standard input
#include "device_code.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int, char **words)
{
    const auto number = [&](int word) { return strtoull(words[word], nullptr, 0); };
    const unsigned format = number(2);
    const u64 count = number(strcmp(words[1], "fill") ? 5 : 7);
    const unsigned lanes = strcmp(words[1], "fill") ? (unsigned)number(6) : 1;
    const size_t bytes = count * lanes * size_of(format);
    // Words of 8 bytes, aligned as an allocation of the device is.
    vector<u64> first(bytes / 8 + 1), second(bytes / 8 + 1);
    unsigned char *a = (unsigned char *)first.data(), *b = (unsigned char *)second.data();
    if (!strcmp(words[1], "fill")) {
        nvtune_fill(a, count, format, number(3), number(4), number(5), number(6));
        return fwrite(a, 1, bytes, stdout) != bytes;
    }
    if (fread(a, 1, bytes, stdin) != bytes || fread(b, 1, bytes, stdin) != bytes) return 1;
    u64 found[3] = {0, 0, 0};
    nvtune_compare(a, b, count, lanes, format, strtod(words[3], nullptr), strtod(words[4], nullptr), found);
    printf("%llu %llu %llu\n", found[0], ~found[1], found[2]);
}
