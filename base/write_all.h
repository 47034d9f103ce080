// Bytes to a descriptor.
#ifndef REGATTA_BASE_WRITE_ALL_H_
#define REGATTA_BASE_WRITE_ALL_H_

#include <string_view>

namespace regatta {

// write(2) until all of it is written. 0, or the system's error; some of it may
// be written then.
int WriteAll(int fd, std::string_view bytes);

}  // namespace regatta

#endif  // REGATTA_BASE_WRITE_ALL_H_
