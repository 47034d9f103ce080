// An OpenCL loader with two platforms of one device each, which adds two tensors
// on the host and goes wrong as FAKE_OPENCL says, by words between commas:
//   platform       the first platform lists no device but says an error (-6)
//   times=HOW      backwards, unordered, zero or absurd (hours)
//   launch=N:CODE  the N-th launch of the process is not taken
//   fault=N:CODE   it is taken, and then fails: so do waiting and launching
//   read=CODE      nothing can be read back
//   resolution=NS  of the clock; 1 unless it is said
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kSuccess = 0,
  kDeviceNotFound = -1,
  kOutOfHostMemory = -6,
  kInvalidValue = -30,
  kInvalidCommandQueue = -36,
  kInvalidKernelName = -46,
};

struct memory {
  char *data;
  size_t bytes;
  int owner;
};
struct kernel {
  struct memory *arguments[3];
};
struct event {
  uint64_t start, end;
};

static int things[8];  // what platforms, devices, contexts ... point to
static int launches, fault_code;
static uint64_t now = 1000000;

// What stands behind "WORD=", or NULL; "" for a word alone.
static const char *said(const char *word) {
  const char *at = getenv("FAKE_OPENCL");
  const size_t length = strlen(word);
  while (at != NULL && *at != '\0') {
    if (strncmp(at, word, length) == 0) {
      if (at[length] == '=') return at + length + 1;
      if (at[length] == ',' || at[length] == '\0') return "";
    }
    at = strchr(at, ',');
    if (at != NULL) ++at;
  }
  return NULL;
}

static int is(const char *text, const char *word) {
  return text != NULL && strncmp(text, word, strlen(word)) == 0;
}

// The code of "N:CODE" behind `word` at launch N, else 0.
static int code_of_launch(const char *word) {
  int number = 0, code = 0;
  const char *text = said(word);
  if (text == NULL || sscanf(text, "%d:%d", &number, &code) != 2) return 0;
  return number == launches ? code : 0;
}

static int text_answer(const char *text, size_t size, void *value,
                       size_t *size_ret) {
  if (size_ret != NULL) *size_ret = strlen(text) + 1;
  if (value != NULL && size > strlen(text)) strcpy(value, text);
  return kSuccess;
}

int clGetPlatformIDs(unsigned count, void **platforms, unsigned *found) {
  if (found != NULL) *found = 2;
  for (unsigned i = 0; i < count && i < 2; ++i) platforms[i] = &things[i];
  return kSuccess;
}
int clGetPlatformInfo(void *platform, unsigned question, size_t size,
                      void *value, size_t *size_ret) {
  (void)question;
  return text_answer(platform == &things[0] ? "First" : "Second", size, value,
                     size_ret);
}
int clGetDeviceIDs(void *platform, uint64_t type, unsigned count,
                   void **devices, unsigned *found) {
  (void)type;
  const int first = platform == &things[0];
  if (first && said("platform") != NULL) return kOutOfHostMemory;
  if (found != NULL) *found = 1;
  if (count > 0) devices[0] = &things[first ? 2 : 3];
  return kSuccess;
}
int clGetDeviceInfo(void *device, unsigned question, size_t size, void *value,
                    size_t *size_ret) {
  const char *resolution = said("resolution");
  uint64_t number;
  switch (question) {
    case 0x102B:  // name
      return text_answer(device == &things[2] ? "Fake 0" : "Fake 1", size,
                         value, size_ret);
    case 0x102D:  // driver's version
    case 0x102F:  // version
      return text_answer("1.2", size, value, size_ret);
    case 0x1030:  // extensions
      return text_answer("", size, value, size_ret);
    case 0x1000:  // type: a GPU
      number = 4;
      break;
    case 0x1002:  // compute units
      number = 4;
      break;
    case 0x1004:  // of a group
      number = 256;
      break;
    case 0x1019:  // alignment, bits
      number = 1024;
      break;
    case 0x101F:  // memory
      number = (uint64_t)1 << 30;
      break;
    case 0x1023:  // local memory
      number = 32768;
      break;
    case 0x1025:  // resolution of times
      number = resolution == NULL ? 1 : strtoull(resolution, NULL, 10);
      break;
    case 0x1027:  // available
    case 0x1028:  // has a compiler
      number = 1;
      break;
    default:
      return kInvalidValue;
  }
  if (value == NULL || size > sizeof(number)) return kInvalidValue;
  memcpy(value, &number, size);
  return kSuccess;
}

void *clCreateContext(const void *p, unsigned n, const void *d, void *f,
                      void *u, int *error) {
  (void)p, (void)n, (void)d, (void)f, (void)u;
  *error = kSuccess;
  return &things[4];
}
int clReleaseContext(void *context) { return (void)context, kSuccess; }
void *clCreateCommandQueue(void *context, void *device, uint64_t flags,
                           int *error) {
  (void)context, (void)device, (void)flags;
  *error = kSuccess;
  return &things[5];
}
int clReleaseCommandQueue(void *queue) { return (void)queue, kSuccess; }
void *clCreateProgramWithSource(void *context, unsigned count, const char **text,
                                const size_t *bytes, int *error) {
  (void)context, (void)count, (void)text, (void)bytes;
  *error = kSuccess;
  return &things[6];
}
int clBuildProgram(void *p, unsigned n, const void *d, const char *o, void *f,
                   void *u) {
  return (void)p, (void)n, (void)d, (void)o, (void)f, (void)u, kSuccess;
}
int clGetProgramBuildInfo(void *p, void *d, unsigned q, size_t size,
                          void *value, size_t *size_ret) {
  (void)p, (void)d, (void)q;
  return text_answer("", size, value, size_ret);
}
int clReleaseProgram(void *program) { return (void)program, kSuccess; }
void *clCreateKernel(void *program, const char *name, int *error) {
  (void)program;
  *error = strcmp(name, "add") == 0 ? kSuccess : kInvalidKernelName;
  return *error == kSuccess ? calloc(1, sizeof(struct kernel)) : NULL;
}
int clSetKernelArg(void *kernel, unsigned index, size_t size,
                   const void *value) {
  if (index >= 3 || size != sizeof(void *)) return kInvalidValue;
  memcpy(&((struct kernel *)kernel)->arguments[index], value, size);
  return kSuccess;
}
int clGetKernelWorkGroupInfo(void *kernel, void *device, unsigned question,
                             size_t size, void *value, size_t *size_ret) {
  const uint64_t number = question == 0x11B0 ? 256 : 0;
  (void)kernel, (void)device, (void)size_ret;
  if (size > sizeof(number)) return kInvalidValue;
  memcpy(value, &number, size);
  return kSuccess;
}
int clReleaseKernel(void *kernel) {
  free(kernel);
  return kSuccess;
}

void *clCreateBuffer(void *context, uint64_t flags, size_t bytes, void *from,
                     int *error) {
  struct memory *memory = malloc(sizeof(*memory));
  (void)context, (void)flags, (void)from;
  memory->data = calloc(1, bytes);
  memory->bytes = bytes;
  memory->owner = 1;
  *error = kSuccess;
  return memory;
}
void *clCreateSubBuffer(void *buffer, uint64_t flags, unsigned kind,
                        const void *region, int *error) {
  const size_t *place = region;
  struct memory *memory = malloc(sizeof(*memory));
  (void)flags, (void)kind;
  memory->data = ((struct memory *)buffer)->data + place[0];
  memory->bytes = place[1];
  memory->owner = 0;
  *error = kSuccess;
  return memory;
}
int clGetSupportedImageFormats(void *c, uint64_t f, unsigned k, unsigned n,
                               void *formats, unsigned *count) {
  (void)c, (void)f, (void)k, (void)n, (void)formats;
  if (count != NULL) *count = 0;
  return kSuccess;
}
void *clCreateImage(void *c, uint64_t f, const void *format, const void *d,
                    void *from, int *error) {
  (void)c, (void)f, (void)format, (void)d, (void)from;
  *error = kInvalidValue;
  return NULL;
}
int clReleaseMemObject(void *memory) {
  if (((struct memory *)memory)->owner) free(((struct memory *)memory)->data);
  free(memory);
  return kSuccess;
}
int clEnqueueFillBuffer(void *queue, void *memory, const void *pattern,
                        size_t pattern_bytes, size_t from, size_t bytes,
                        unsigned n, const void *w, void *e) {
  (void)queue, (void)pattern_bytes, (void)n, (void)w, (void)e;
  memset(((struct memory *)memory)->data + from, *(const char *)pattern, bytes);
  return kSuccess;
}
int clEnqueueFillImage(void *q, void *m, const void *c, const size_t *o,
                       const size_t *r, unsigned n, const void *w, void *e) {
  (void)q, (void)m, (void)c, (void)o, (void)r, (void)n, (void)w, (void)e;
  return kInvalidValue;
}
int clEnqueueReadBuffer(void *queue, void *memory, unsigned blocking,
                        size_t from, size_t bytes, void *to, unsigned n,
                        const void *w, void *e) {
  (void)queue, (void)blocking, (void)n, (void)w, (void)e;
  if (said("read") != NULL) return atoi(said("read"));
  memcpy(to, ((struct memory *)memory)->data + from, bytes);
  return kSuccess;
}
int clEnqueueWriteBuffer(void *queue, void *memory, unsigned blocking,
                         size_t to, size_t bytes, const void *from, unsigned n,
                         const void *w, void *e) {
  (void)queue, (void)blocking, (void)n, (void)w, (void)e;
  memcpy(((struct memory *)memory)->data + to, from, bytes);
  return kSuccess;
}

static void add(struct memory *const *arguments) {
  const size_t count = arguments[2]->bytes / sizeof(float);
  for (size_t i = 0; i < count; ++i) {
    float a, b;
    memcpy(&a, arguments[0]->data + i * sizeof(float), sizeof(float));
    memcpy(&b, arguments[1]->data + i * sizeof(float), sizeof(float));
    a += b;
    memcpy(arguments[2]->data + i * sizeof(float), &a, sizeof(float));
  }
}

// A tenth of a microsecond for each launch and one between them: 600 calls of
// two take less than the agent allows for clocks that differ, however fast the
// host has passed them.
static struct event *times(void) {
  const char *how = said("times");
  struct event *event = malloc(sizeof(*event));
  event->start = now + 100;
  event->end = now + 200;
  now += 200;
  if (is(how, "backwards")) event->end = event->start - 100000;
  if (is(how, "unordered")) event->start = event->end = 1000000000 - now;
  if (is(how, "zero")) event->start = event->end = 1000000;
  if (is(how, "absurd")) event->end = event->start + 3600000000000ull;
  return event;
}

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions,
                           const size_t *offset, const size_t *global,
                           const size_t *local, unsigned n, const void *w,
                           void **event) {
  (void)queue, (void)dimensions, (void)offset, (void)global, (void)local;
  (void)n, (void)w;
  ++launches;
  if (fault_code != 0) return kInvalidCommandQueue;
  if (code_of_launch("launch") != 0) return code_of_launch("launch");
  fault_code = code_of_launch("fault");
  add(((struct kernel *)kernel)->arguments);
  if (event != NULL) *event = times();
  return kSuccess;
}
int clFinish(void *queue) { return (void)queue, fault_code; }
int clWaitForEvents(unsigned count, const void *events) {
  return (void)count, (void)events, fault_code;
}
int clGetEventProfilingInfo(void *event, unsigned question, size_t size,
                            void *value, size_t *size_ret) {
  const struct event *times = event;
  (void)size_ret;
  memcpy(value, question == 0x1282 ? &times->start : &times->end, size);
  return kSuccess;
}
int clReleaseEvent(void *event) {
  free(event);
  return kSuccess;
}
