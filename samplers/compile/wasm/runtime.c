/* What compiled functions need beside each other and libm: Numba's reference-counted memory, NumPy's SFC64 and
   SeedSequence. Functions of Python's API are in error paths alone: a call of one ends the module. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Memory, as Numba's compiled code lays it out: that code reads the place of `data`. */

typedef struct {
  uint64_t count;
  void (*destroy)(void *data);
  uint32_t apart;
  void *data;
  uint64_t size;
} MemInfo;

static MemInfo *described(MemInfo *memory, void *data, uint64_t size) {
  if (!memory || !data) __builtin_trap();
  memory->count = 1;
  memory->destroy = 0;
  memory->apart = 0;
  memory->data = data;
  memory->size = size;
  return memory;
}

void *NRT_MemInfo_alloc_aligned(uint64_t size, uint32_t align) {
  MemInfo *memory = malloc(sizeof(MemInfo) + size + align);
  uintptr_t first = (uintptr_t)(memory + 1);
  return described(memory, (void *)((first + align - 1) & ~(uintptr_t)(align - 1)), size);
}

void *NRT_MemInfo_alloc(uint64_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

/* Of lists, whose data are a block of their own; a list of what is counted itself has a function that lets go of it. */
void *NRT_MemInfo_new_varsize_dtor(uint64_t size, void *destroy) {
  MemInfo *memory = described(malloc(sizeof(MemInfo)), malloc(size + 1), size);
  memory->destroy = destroy;
  memory->apart = 1;
  return memory;
}

void *NRT_MemInfo_varsize_realloc(MemInfo *memory, uint64_t size) {
  void *data = realloc(memory->data, size + 1);
  if (!data) __builtin_trap();
  memory->data = data;
  memory->size = size;
  return data;
}

void NRT_MemInfo_call_dtor(MemInfo *memory) {
  if (memory->destroy) memory->destroy(memory->data);
  if (memory->apart) free(memory->data);
  free(memory);
}

void *NRT_Allocate(uint64_t size) { return malloc(size); }
void NRT_Free(void *data) { free(data); }

/* Whether an array can have another shape where it is; writes its strides. Axes of one element have any stride. */
int32_t numba_attempt_nocopy_reshape(int64_t n, const int64_t *shape, const int64_t *strides, int64_t m, const int64_t *new_shape,
                                     int64_t *new_strides, int64_t itemsize, int32_t fortran) {
  int64_t old_shape[32], old_strides[32], count = 0, size = 1, new_size = 1;
  if (n > 32) return 0;
  for (int64_t i = 0; i < n; i++) size *= shape[i];
  for (int64_t i = 0; i < m; i++) new_size *= new_shape[i];
  if (size != new_size) return 0;
  if (size == 0) {
    for (int64_t k = 0; k < m; k++) new_strides[k] = itemsize;
    return 1;
  }
  for (int64_t i = 0; i < n; i++)
    if (shape[i] != 1) old_shape[count] = shape[i], old_strides[count++] = strides[i];
  int64_t oi = 0, oj = 1, ni = 0, nj = 1;
  while (ni < m && oi < count) {
    int64_t np = new_shape[ni], op = old_shape[oi];
    while (np != op) {
      if (np < op) {
        if (nj >= m) return 0;
        np *= new_shape[nj++];
      } else {
        if (oj >= count) return 0;
        op *= old_shape[oj++];
      }
    }
    for (int64_t k = oi; k + 1 < oj; k++)
      if (fortran ? old_strides[k + 1] != old_shape[k] * old_strides[k] : old_strides[k] != old_shape[k + 1] * old_strides[k + 1]) return 0;
    if (fortran) {
      new_strides[ni] = old_strides[oi];
      for (int64_t k = ni + 1; k < nj; k++) new_strides[k] = new_strides[k - 1] * new_shape[k - 1];
    } else {
      new_strides[nj - 1] = old_strides[oj - 1];
      for (int64_t k = nj - 1; k > ni; k--) new_strides[k - 1] = new_strides[k] * new_shape[k];
    }
    ni = nj++;
    oi = oj++;
  }
  int64_t last = ni >= 1 ? new_strides[ni - 1] : itemsize;
  if (fortran && ni >= 1) last *= new_shape[ni - 1];
  for (int64_t k = ni; k < m; k++) new_strides[k] = last;
  return 1;
}

#define ABSENT(name) void name(void) { __builtin_trap(); }
ABSENT(PyErr_SetString)
ABSENT(PyImport_ImportModule)
ABSENT(PyLong_AsVoidPtr)
ABSENT(PyObject_CallFunctionObjArgs)
ABSENT(PyObject_GetAttrString)
ABSENT(PyObject_Hash)
ABSENT(PyTuple_Pack)
ABSENT(PyUnicode_FromKindAndData)
ABSENT(Py_DecRef)
ABSENT(numba_gil_ensure)
ABSENT(numba_gil_release)
ABSENT(numba_unpickle)
void *PyExc_RuntimeError, *PyExc_StopIteration, *PyExc_SystemError, *PyExc_ValueError, *PyExc_MemoryError, *PyExc_IndexError,
    *PyExc_TypeError, *PyExc_ZeroDivisionError, *PyExc_OverflowError;

/* NumPy's generator SFC64 (C. Doty-Humphrey) and the half of a number that a draw of 32 bits leaves. */

typedef struct {
  uint64_t a, b, c, counter;
  uint32_t half, has_half;
} SFC64;

uint64_t next_uint64(int64_t at) {
  SFC64 *s = (SFC64 *)(uintptr_t)at;
  uint64_t out = s->a + s->b + s->counter++;
  s->a = s->b ^ (s->b >> 11);
  s->b = s->c + (s->c << 3);
  s->c = ((s->c << 24) | (s->c >> 40)) + out;
  return out;
}

uint32_t next_uint32(int64_t at) {
  SFC64 *s = (SFC64 *)(uintptr_t)at;
  if (s->has_half) {
    s->has_half = 0;
    return s->half;
  }
  uint64_t whole = next_uint64(at);
  s->has_half = 1;
  s->half = whole >> 32;
  return (uint32_t)whole;
}

double next_double(int64_t at) { return (next_uint64(at) >> 11) * 0x1p-53; }

static const void *const next_functions[3] = {next_uint64, next_uint32, next_double};
const void *const *generator_functions(void) { return next_functions; }

/* NumPy's SeedSequence (M. O'Neill's seed_seq_fe): its pool of four words from an integer, then three numbers of it. */

static uint32_t hashed(uint32_t value, uint32_t *constant, uint32_t factor) {
  value ^= *constant;
  *constant *= factor;
  value *= *constant;
  return value ^ (value >> 16);
}

static uint32_t mixed(uint32_t x, uint32_t y) {
  uint32_t out = 0xca01f9ddu * x - 0x4973f715u * y;
  return out ^ (out >> 16);
}

/* With a child's number, as of SeedSequence.spawn; NULL without. */
static SFC64 *sequence(uint64_t seed, const uint32_t *child) {
  SFC64 *s = malloc(sizeof(SFC64));
  uint32_t pool[4], words[6], constant = 0x43b0d7e5u;
  const uint32_t entropy[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0};
  if (!s) __builtin_trap();
  for (int i = 0; i < 4; i++) pool[i] = hashed(entropy[i], &constant, 0x931e8875u);
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      if (from != to) pool[to] = mixed(pool[to], hashed(pool[from], &constant, 0x931e8875u));
  for (int to = 0; child && to < 4; to++) pool[to] = mixed(pool[to], hashed(*child, &constant, 0x931e8875u));
  constant = 0x8b51f9ddu;
  for (int i = 0; i < 6; i++) words[i] = hashed(pool[i % 4], &constant, 0x58f38dedu);
  s->a = words[0] | (uint64_t)words[1] << 32;
  s->b = words[2] | (uint64_t)words[3] << 32;
  s->c = words[4] | (uint64_t)words[5] << 32;
  s->counter = 1;
  s->half = s->has_half = 0;
  for (int i = 0; i < 12; i++) next_uint64((int64_t)(uintptr_t)s);
  return s;
}

SFC64 *seeded(uint64_t seed) { return sequence(seed, 0); }
SFC64 *spawned(uint64_t seed, uint32_t child) { return sequence(seed, &child); }
