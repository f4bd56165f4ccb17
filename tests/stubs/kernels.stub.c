#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wcast-qual"
#define __NV_CUBIN_HANDLE_STORAGE__ static
#if !defined(__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__)
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#endif
#include "crt/host_runtime.h"
#include "kernels.fatbin.c"
typedef View<const double>  _Z4ViewIKdE;
typedef View<float>  _Z4ViewIfE;
extern __attribute__((visibility("hidden"))) void __device_stub__Z5plainifPKfPf(int, float, const float *__restrict__, float *);
extern __attribute__((visibility("hidden"))) void __device_stub__Z8typedefsfPfjmlPh(real, real *, uint32_t, size_t, int64_t, uint8_t *);
static void __device_stub__Z8instanceIfLi4EEvPT_i(float *, int);
extern __attribute__((visibility("hidden"))) void __device_stub__Z6values6Params4ViewIfEPS0_IKdEPPfRA4_fPv(struct Params&,  _Z4ViewIfE&,  _Z4ViewIKdE *, real **, float (*)[4], void *);
extern __attribute__((visibility("hidden"))) void __device_stub__Z5twiceiPf(int, float *);
extern __attribute__((visibility("hidden"))) void __device_stub__Z5twiceiPd(int, double *);
extern __attribute__((visibility("hidden"))) void __device_stub__Z7nothingv(void);
extern __attribute__((visibility("hidden"))) void __device_stub__ZN2ns5inner6packedE6__halfPS1_PK13__nv_bfloat16P6float4P6float3PbP6uchar4(struct __half&, half *, const struct __nv_bfloat16 *, struct float4 *, struct float3 *, bool *, struct uchar4 *);
extern __attribute__((visibility("hidden"))) void __device_stub__ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd(unsigned long long, signed char, bool, double);
static void __nv_cudaEntityRegisterCallback(void **);
static void __sti____cudaRegisterAll(void) __attribute__((__constructor__));
__attribute__((visibility("hidden"))) void __device_stub__Z5plainifPKfPf(int __par0, float __par1, const float *__restrict__ __par2, float *__par3){ const float *__T0;
__cudaLaunchPrologue(4);__cudaSetupArgSimple(__par0, 0UL);__cudaSetupArgSimple(__par1, 4UL);__T0 = __par2;__cudaSetupArgSimple(__T0, 8UL);__cudaSetupArgSimple(__par3, 16UL);__cudaLaunch(((char *)((void ( *)(int, float, const float *__restrict__, float *))plain)), 0U);}
# 8 "kernels.cu"
void plain( int __cuda_0,float __cuda_1,const float *__restrict__ __cuda_2,float *__cuda_3)
# 8 "kernels.cu"
{__device_stub__Z5plainifPKfPf( __cuda_0,__cuda_1,__cuda_2,__cuda_3); }
# 1 "kernels.cudafe1.stub.c"
__attribute__((visibility("hidden"))) void __device_stub__Z8typedefsfPfjmlPh( real __par0,  real *__par1,  uint32_t __par2,  size_t __par3,  int64_t __par4,  uint8_t *__par5) {  __cudaLaunchPrologue(6); __cudaSetupArgSimple(__par0, 0UL); __cudaSetupArgSimple(__par1, 8UL); __cudaSetupArgSimple(__par2, 16UL); __cudaSetupArgSimple(__par3, 24UL); __cudaSetupArgSimple(__par4, 32UL); __cudaSetupArgSimple(__par5, 40UL); __cudaLaunch(((char *)((void ( *)(real, real *, uint32_t, size_t, int64_t, uint8_t *))typedefs)), 0U); }
# 9 "kernels.cu"
void typedefs( ::real __cuda_0,::real *__cuda_1,::uint32_t __cuda_2,::size_t __cuda_3,::int64_t __cuda_4,::uint8_t *__cuda_5)
# 9 "kernels.cu"
{__device_stub__Z8typedefsfPfjmlPh( __cuda_0,__cuda_1,__cuda_2,__cuda_3,__cuda_4,__cuda_5); }
# 1 "kernels.cudafe1.stub.c"
static void __device_stub__Z8instanceIfLi4EEvPT_i( float *__par0,  int __par1) {  __cudaLaunchPrologue(2); __cudaSetupArgSimple(__par0, 0UL); __cudaSetupArgSimple(__par1, 8UL); __cudaLaunch(((char *)((void ( *)(float *, int))instance<float, (int)4> )), 0U); }
template<> __specialization_static void __wrapper__device_stub_instance<float,4>( float *&__cuda_0,int &__cuda_1){__device_stub__Z8instanceIfLi4EEvPT_i( (float *&)__cuda_0,(int &)__cuda_1);}
__attribute__((visibility("hidden"))) void __device_stub__Z6values6Params4ViewIfEPS0_IKdEPPfRA4_fPv( struct Params&__par0,   _Z4ViewIfE&__par1,   _Z4ViewIKdE *__par2,  real **__par3,  float (*__par4)[4],  void *__par5) {  __cudaLaunchPrologue(6); __cudaSetupArg(__par0, 0UL); __cudaSetupArg(__par1, 8UL); __cudaSetupArgSimple(__par2, 24UL); __cudaSetupArgSimple(__par3, 32UL); __cudaSetupArgSimple(__par4, 40UL); __cudaSetupArgSimple(__par5, 48UL); __cudaLaunch(((char *)((void ( *)(struct Params,  _Z4ViewIfE,  _Z4ViewIKdE *, real **, float (&)[4], void *))values)), 0U); }
# 23 "kernels.cu"
void values( struct ::Params __cuda_0, _Z4ViewIfE __cuda_1, _Z4ViewIKdE *__cuda_2,::real **__cuda_3,float (&__cuda_4)[4],void *__cuda_5)
# 23 "kernels.cu"
{__device_stub__Z6values6Params4ViewIfEPS0_IKdEPPfRA4_fPv( __cuda_0,__cuda_1,__cuda_2,__cuda_3,__cudaAddressOf(__cuda_4),__cuda_5); }
# 1 "kernels.cudafe1.stub.c"
__attribute__((visibility("hidden"))) void __device_stub__Z5twiceiPf( int __par0,  float *__par1) {  __cudaLaunchPrologue(2); __cudaSetupArgSimple(__par0, 0UL); __cudaSetupArgSimple(__par1, 8UL); __cudaLaunch(((char *)((void ( *)(int, float *))twice)), 0U); }
# 24 "kernels.cu"
void twice( int __cuda_0,float *__cuda_1)
# 24 "kernels.cu"
{__device_stub__Z5twiceiPf( __cuda_0,__cuda_1); }
# 1 "kernels.cudafe1.stub.c"
__attribute__((visibility("hidden"))) void __device_stub__Z5twiceiPd( int __par0,  double *__par1) {  __cudaLaunchPrologue(2); __cudaSetupArgSimple(__par0, 0UL); __cudaSetupArgSimple(__par1, 8UL); __cudaLaunch(((char *)((void ( *)(int, double *))twice)), 0U); }
# 25 "kernels.cu"
void twice( int __cuda_0,double *__cuda_1)
# 25 "kernels.cu"
{__device_stub__Z5twiceiPd( __cuda_0,__cuda_1); }
# 1 "kernels.cudafe1.stub.c"
__attribute__((visibility("hidden"))) void __device_stub__Z7nothingv(void) {  __cudaLaunchPrologue(1); __cudaLaunch(((char *)((void ( *)(void))nothing)), 0U); }
# 26 "kernels.cu"
void nothing(void)
# 26 "kernels.cu"
{__device_stub__Z7nothingv(); }
# 1 "kernels.cudafe1.stub.c"
__attribute__((visibility("hidden"))) void __device_stub__ZN2ns5inner6packedE6__halfPS1_PK13__nv_bfloat16P6float4P6float3PbP6uchar4( struct __half&__par0,  half *__par1,  const struct __nv_bfloat16 *__par2,  struct float4 *__par3,  struct float3 *__par4,  bool *__par5,  struct uchar4 *__par6) {  __cudaLaunchPrologue(7); __cudaSetupArg(__par0, 0UL); __cudaSetupArgSimple(__par1, 8UL); __cudaSetupArgSimple(__par2, 16UL); __cudaSetupArgSimple(__par3, 24UL); __cudaSetupArgSimple(__par4, 32UL); __cudaSetupArgSimple(__par5, 40UL); __cudaSetupArgSimple(__par6, 48UL); __cudaLaunch(((char *)((void ( *)(struct __half, half *, const struct __nv_bfloat16 *, struct float4 *, struct float3 *, bool *, struct uchar4 *))ns::inner::packed)), 0U); }
# 12 "kernels.cu"
void ns::inner::packed( struct ::__half __cuda_0,::half *__cuda_1,const struct ::__nv_bfloat16 *__cuda_2,struct ::float4 *__cuda_3,struct ::float3 *__cuda_4,bool *__cuda_5,struct ::uchar4 *__cuda_6)
# 12 "kernels.cu"
{__device_stub__ZN2ns5inner6packedE6__halfPS1_PK13__nv_bfloat16P6float4P6float3PbP6uchar4( __cuda_0,__cuda_1,__cuda_2,__cuda_3,__cuda_4,__cuda_5,__cuda_6); }
# 1 "kernels.cudafe1.stub.c"
__attribute__((visibility("hidden"))) void __device_stub__ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd( unsigned long long __par0,  signed char __par1,  bool __par2,  double __par3) {  __cudaLaunchPrologue(4); __cudaSetupArgSimple(__par0, 0UL); __cudaSetupArgSimple(__par1, 8UL); __cudaSetupArgSimple(__par2, 9UL); __cudaSetupArgSimple(__par3, 16UL); __cudaLaunch(((char *)((void ( *)(unsigned long long, signed char, bool, double))_NV_ANON_NAMESPACE::anonymous)), 0U); }
# 18 "kernels.cu"
void _NV_ANON_NAMESPACE::anonymous( unsigned long long __cuda_0,signed char __cuda_1,bool __cuda_2,double __cuda_3)
# 19 "kernels.cu"
{__device_stub__ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd( __cuda_0,__cuda_1,__cuda_2,__cuda_3); }
# 1 "kernels.cudafe1.stub.c"
static void __nv_cudaEntityRegisterCallback( void **__T1) {  __nv_dummy_param_ref(__T1); __nv_save_fatbinhandle_for_managed_rt(__T1); __cudaRegisterEntry(__T1, ((void ( *)(unsigned long long, signed char, bool, double))_NV_ANON_NAMESPACE::anonymous), _ZN43_GLOBAL__N__48378fa3_10_kernels_cu_711ddf6c9anonymousEyabd, 128); __cudaRegisterEntry(__T1, ((void ( *)(struct __half, half *, const struct __nv_bfloat16 *, struct float4 *, struct float3 *, bool *, struct uchar4 *))ns::inner::packed), _ZN2ns5inner6packedE6__halfPS1_PK13__nv_bfloat16P6float4P6float3PbP6uchar4, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(void))nothing), _Z7nothingv, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(int, double *))twice), _Z5twiceiPd, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(int, float *))twice), _Z5twiceiPf, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(struct Params,  _Z4ViewIfE,  _Z4ViewIKdE *, real **, float (&)[4], void *))values), _Z6values6Params4ViewIfEPS0_IKdEPPfRA4_fPv, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(float *, int))instance<float, (int)4> ), _Z8instanceIfLi4EEvPT_i, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(real, real *, uint32_t, size_t, int64_t, uint8_t *))typedefs), typedefs, (-1)); __cudaRegisterEntry(__T1, ((void ( *)(int, float, const float *__restrict__, float *))plain), _Z5plainifPKfPf, (-1)); }
static void __sti____cudaRegisterAll(void) {  __cudaRegisterBinary(__nv_cudaEntityRegisterCallback);  }

#pragma GCC diagnostic pop
