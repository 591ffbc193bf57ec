"""Nasty C through the whole pipeline: three machines must print what a native build of the same sources prints.

Each program puts one part of C to the test: what crosses the boundary by value, how types lie in memory, what runs at
load, what the optimiser may assume. The driver is compiled by another compiler for the machine itself.
"""
# ruff: noqa: E501 - C programs in a table: name, public header, source, driver

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from neutral import run_with
from programs import SLOTS, installed, native, package

from visget.format.package import Package

INCLUDES = '#include <stdio.h>\n#include "api.h"\n'


@dataclass(frozen=True)
class Program:
    """A library of one file and a program that uses it."""

    name: str
    header: str
    source: str
    driver: str


def _by_value() -> Program:
    """Structs of each size from 1 to 16 bytes, as parameter, as result, and behind six and more words."""
    header, source, driver = "", "", ""
    for n in range(1, 17):
        last = f"int last{n}(long a, long b, long c, long d, long e, long f, long g, struct s{n} x)"
        header += f"struct s{n} {{ unsigned char b[{n}]; }};\nstruct s{n} add{n}(struct s{n} x, int d);\n{last};\n"
        source += f"struct s{n} add{n}(struct s{n} x, int d) {{ for (int i = 0; i < {n}; i++) x.b[i] += d + i; return x; }}\n"
        source += f"{last} {{ int r = a + b + c + d + e + f + g; for (int i = 0; i < {n}; i++) r = r * 3 + x.b[i]; return r; }}\n"
        driver += f"{{ struct s{n} x; for (int i = 0; i < {n}; i++) x.b[i] = i * 17 + 1; x = add{n}(x, 5);\n"
        driver += f'for (int i = 0; i < {n}; i++) printf("%d ", x.b[i]); printf("%d\\n", last{n}(1, 2, 3, 4, 5, 6, 7, x)); }}\n'
    return Program("by-value-sizes", header, source, f"int main(void) {{\n{driver}}}")


PROGRAMS = (
    _by_value(),
    Program(
        "bit-fields-by-value",
        "struct b {unsigned a:3; int b:7; long c:22; }; struct b f(struct b x); struct w { long a:40; int b:20; unsigned long c:60; _Bool d:1; }; struct w g(struct w x); long h(char p, struct b x, short q, struct w y);",
        "struct b f(struct b x){x.a++;x.b=-x.b;x.c*=3;return x;} struct w g(struct w x){x.a-=7;x.b=~x.b;x.c++;x.d=!x.d;return x;} long h(char p, struct b x, short q, struct w y){return p+x.a+x.b+x.c+q+y.a+y.b+y.c+y.d;}",
        'int main(void){struct b x={6,-60,-12345}; x=f(x); printf("%d %d %d\\n",x.a,x.b,(int)x.c); struct w y={-123456789,-5000,1UL<<59,1}; y=g(y); printf("%ld %d %lu %d %ld\\n",(long)y.a,y.b,(unsigned long)y.c,y.d,h(-3,x,-400,y));}',
    ),
    Program(
        "unions-by-value",
        "union u {int i; char c[8];}; union u f(union u x); union v {long l[2]; char c[13];}; union v g(union v x,int n);",
        "union u f(union u x){x.c[7]=x.c[0];return x;} union v g(union v x,int n){x.l[1]+=n;return x;}",
        'int main(void){union u x={.i=0x01020304};x.c[4]=x.c[5]=x.c[6]=9;x=f(x);for(int i=0;i<8;i++)printf("%d ",x.c[i]);union v y={{5,6}};y=g(y,-9);printf("%ld %ld",y.l[0],y.l[1]);}',
    ),
    Program(
        "enums",
        "enum e {A=-1,B=1L<<40}; enum n {N=-5,M=7}; enum q {Q=0xffffffffu}; enum e f(enum e x); enum n g(enum n x); enum q h(enum q x); int k(enum n *p);",
        "enum e f(enum e x){return x==B?A:B;} enum n g(enum n x){return x==N?M:N;} enum q h(enum q x){return x-1;} int k(enum n*p){return p[0]*10+p[1];}",
        'int main(void){enum n a[]={N,M};printf("%ld %ld %d %d %u %d",(long)f(A),(long)f(B),g(N),g(M),h(Q),k(a));}',
    ),
    Program(
        "flexible",
        "struct f {int n; short d[];}; int f(struct f*p); struct z {char c; int d[0];}; int g(struct z*p);",
        "int f(struct f*p){int r=sizeof *p;for(int i=0;i<p->n;i++)r+=p->d[i];return r;} int g(struct z*p){return p->d[1]+sizeof *p;}",
        '#include <stdlib.h>\nint main(void){struct f*p=malloc(64);p->n=3;p->d[0]=-1;p->d[1]=500;p->d[2]=7;struct z*q=calloc(1,64);q->d[1]=77;printf("%d %d",f(p),g(q));}',
    ),
    Program(
        "packed",
        "struct __attribute__((packed)) p {char a; int b; double c; short d;}; long f(struct p*x); struct __attribute__((aligned(32))) al {char c;}; int g(struct al*x); struct i { char a; _Alignas(16) int b; char c; }; int h(struct i*x); struct __attribute__((packed,aligned(2))) pa { char a; long b; }; long k(struct pa *x);",
        "long f(struct p*x){x->b++;x->c*=2;return x->a+x->b+x->d+(long)x->c+sizeof*x;} int g(struct al*x){return x[0].c+x[1].c+sizeof*x;} int h(struct i*x){return x[1].b+x[1].c+sizeof*x;} long k(struct pa*x){return x[1].b+sizeof*x;}",
        'int main(void){struct p x={1,-2,3.5,-4};long r=f(&x);printf("%ld %d %g\\n",r,x.b,x.c);struct al a[2]={{3},{4}};struct i b[2]={{1,2,3},{4,5,6}};struct pa c[2]={{1,2},{3,-4}};printf("%d %d %ld",g(a),h(b),k(c));}',
    ),
    Program(
        "aligned-by-value",
        "struct __attribute__((aligned(8))) s {char c;}; int f(int a, struct s x, int b); struct __attribute__((packed)) q {int a; char b;}; int g(struct q x, int y); typedef int __attribute__((aligned(16))) ai; int h(int a, ai b, int c);",
        "int f(int a, struct s x, int b){return a*100+x.c*10+b;} int g(struct q x,int y){return x.a+x.b*y;} int h(int a, ai b, int c){return a*100+b*10+c;}",
        'int main(void){struct s x={5};struct q y={-3,7};printf("%d %d %d",f(1,x,2),g(y,3),h(1,2,3));}',
    ),
    Program(
        "callbacks-with-structs",
        "struct t {long a,b;}; struct b {long a,b,c;}; struct d {double x,y;}; struct i {int a; short b;}; long f(struct t (*p)(struct t,int), struct b (*q)(int), struct d (*r)(struct d, double), struct i (*s)(struct i));",
        "long f(struct t (*p)(struct t,int), struct b (*q)(int), struct d (*r)(struct d,double), struct i (*s)(struct i)){struct t x={1,2};x=p(x,3);struct b y=q(5);struct d z={1.5,2.5};z=r(z,2);struct i w={7,-8};w=s(w);return x.a+x.b*10+y.a*100+y.b*1000+y.c*10000+(long)(z.x*1e6+z.y*1e7)+w.a+w.b;}",
        'struct t P(struct t x,int k){x.a+=k;x.b*=k;return x;} struct b Q(int k){return (struct b){k,k+1,k+2};} struct d R(struct d x,double k){x.x*=k;x.y+=k;return x;} struct i S(struct i x){x.a=-x.a;x.b*=2;return x;} int main(void){printf("%ld",f(P,Q,R,S));}',
    ),
    Program(
        "narrow",
        "int f(signed char a, unsigned char b, short c, unsigned short d, _Bool e, char g, signed char h, short i, unsigned char j, _Bool k, short l); signed char sc(int x); unsigned short us(int x); _Bool bo(int x); int cb(int (*p)(signed char, unsigned char, short, unsigned short, _Bool, signed char, short, signed char), int v); int rb(signed char (*p)(int), unsigned short (*q)(int), _Bool (*r)(int));",
        "int f(signed char a, unsigned char b, short c, unsigned short d, _Bool e, char g, signed char h, short i, unsigned char j, _Bool k, short l){return a+b*2+c*3+d*4+e*5+g*6+h*7+i*8+j*9+k*10+l*11;} signed char sc(int x){return x;} unsigned short us(int x){return x;} _Bool bo(int x){return x;} int cb(int (*p)(signed char, unsigned char, short, unsigned short, _Bool, signed char, short,signed char), int v){return p(v,v,v,v,v,v,v,v);} int rb(signed char (*p)(int), unsigned short (*q)(int), _Bool (*r)(int)){return p(-1)+q(-1)+r(256)*3+(p(200)<0);}",
        'int C(signed char a, unsigned char b, short c, unsigned short d, _Bool e, signed char h, short i,signed char l){return a+b*2+c*3+d*4+e*5+h*7+i*8+l*11;} signed char A(int x){return x;} unsigned short B(int x){return x;} _Bool D(int x){return x;} int main(void){printf("%d %d %d %d %d ",f(-1,255,-300,65535,1,-5,-128,-32768,200,1,-7),sc(200),us(-1),bo(256),bo(0)); volatile int v=-123456; printf("%d %d",cb(C,v),rb(A,B,D));}',
    ),
    Program(
        "many-arguments",
        "double f(double a,float b,double c,float d,double e,float g,double h,float i,double j,float k,int l,long m,char n,short o,int p,int q,int r,int s,signed char t,double u,float v);",
        "double f(double a,float b,double c,float d,double e,float g,double h,float i,double j,float k,int l,long m,char n,short o,int p,int q,int r,int s,signed char t,double u,float v){return a+2*b+3*c+4*d+5*e+6*g+7*h+8*i+9*j+10*k+11*l+12*m+13*n+14*o+15*p+16*q+17*r+18*s+19*t+20*u+21*v;}",
        'int main(void){printf("%g",f(1,2,3,4,5,6,7,8,9,10,11,12,13,-14,15,16,17,-18,-19,20,21));}',
    ),
    Program(
        "complex",
        "#include <complex.h>\ndouble _Complex f(double _Complex a, double _Complex b, int n); struct z {double _Complex v; int n;}; void g(struct z*p);",
        "double _Complex f(double _Complex a,double _Complex b,int n){double _Complex r=a;for(int i=0;i<n;i++){double x=creal(r)*creal(b)-cimag(r)*cimag(b),y=creal(r)*cimag(b)+cimag(r)*creal(b);__real__ r=x;__imag__ r=y;}return conj(r)+a;} void g(struct z*p){p->v=-p->v*2.0;p->n++;}",
        'int main(void){double _Complex r=f(1+2*I,0.5-I,3);struct z s={r,1};g(&s);printf("%g %g %g %g %d",creal(r),cimag(r),creal(s.v),cimag(s.v),s.n);}',
    ),
    Program(
        "atomics",
        "#include <stdatomic.h>\nlong f(int n); struct p {int a,b;}; int g(void); int cas(_Atomic int*p,int a,int b);",
        "static _Atomic signed char c; static _Atomic short s; static _Atomic int i; static _Atomic long l; static _Atomic unsigned char uc; static atomic_flag fl=ATOMIC_FLAG_INIT; static _Atomic struct p st; static _Atomic(void*) vp; static _Atomic _Bool b; long f(int n){for(int k=0;k<n;k++){c+=3;s-=7;i^=k;l|=1L<<(k%60);uc--; atomic_fetch_and(&i,0xffff);} long r=atomic_exchange(&l,5); r+=atomic_flag_test_and_set(&fl); r+=atomic_flag_test_and_set(&fl); b=!b; vp=&c; return r+c+s+i+l+uc+b+(vp!=0);} int g(void){struct p x={1,2},y={3,4};st=x;atomic_compare_exchange_strong(&st,&x,y);struct p z=st;return z.a*10+z.b;} int cas(_Atomic int*p,int a,int b){return atomic_compare_exchange_strong_explicit(p,&a,b,memory_order_acq_rel,memory_order_relaxed)*100+a;}",
        'int main(void){_Atomic int a=5;long r=f(50);int x=cas(&a,5,6);int y=cas(&a,5,7);printf("%ld %d %d %d",r,g(),x,y);}',
    ),
    Program(
        "memory-order",
        "int f(void);",
        "#include <stdatomic.h>\nstatic atomic_int x; int f(void){atomic_thread_fence(memory_order_seq_cst);atomic_signal_fence(memory_order_acquire);atomic_store_explicit(&x,3,memory_order_release);return atomic_load_explicit(&x,memory_order_acquire)+atomic_fetch_sub(&x,1)+atomic_fetch_xor(&x,2)+atomic_exchange(&x,9)+atomic_is_lock_free(&x);}",
        'int main(void){printf("%d",f());}',
    ),
    Program(
        "control",
        "int f(int n,const char*s); long sw(long x); int g(int n);",
        "#include <string.h>\nint f(int n,const char*s){int v[n];char*a=__builtin_alloca(n+1);memset(a,s[0],n);a[n]=0;for(int i=0;i<n;i++)v[i]=i*i+a[i];int r=0;for(int i=0;i<n;i++)r+=v[i];static void*t[]={&&A,&&B,&&C};int k=0;goto *t[r%3];A:k=1;goto *t[1];B:k+=10;goto *t[2];C:return r+k*1000;} long sw(long x){switch(x){case 1L<<40:return 1;case -1:return 2;case 0x7fffffffffffffff:return 3;case 5 ... 9:return 4;default:return x;}} int g(int n){switch(n){case 0:return 4;case 1:return 9;case 2:return -3;case 3:return 88;case 4:return 2;case 5:return 11;case 6:return 0;default:return 1;}}",
        'int main(void){printf("%d %d %d|%ld %ld %ld %ld %ld|",f(5,"a"),f(6,"b"),f(7,"c"),sw(1L<<40),sw(-1),sw(0x7fffffffffffffff),sw(7),sw(42));for(int i=0;i<8;i++)printf("%d ",g(i));}',
    ),
    Program(
        "int128",
        "void f(unsigned long*p); int g(long a,long b);",
        "typedef unsigned __int128 u; void f(unsigned long*p){u x=((u)p[0]<<64)|p[1];u y=x*p[2]+p[3];y=(y<<(p[4]&127))|(y>>(128-(p[4]&127)));y-=x;y^=~x;p[0]=y>>64;p[1]=y;p[2]=y>x;} int g(long a,long b){__int128 x=(__int128)a*b;return (x<0)+2*(x>>100!=0)+__builtin_popcountll(x>>64)*4;}",
        'int main(void){unsigned long p[]={0x123456789abcdef0,0xfedcba9876543210,0xdeadbeefcafebabe,77,37};f(p);printf("%lx %lx %lx %d %d",p[0],p[1],p[2],g(-1L<<62,1L<<61),g(3,4));}',
    ),
    Program(
        "inline-header",
        "static inline int twice(int x){return 2*x;}\ninline int thrice(int x);inline int thrice(int x){return 3*x;}\nint f(int x);",
        "extern inline int thrice(int x);\nint f(int x){return twice(x)+thrice(x);}",
        'int main(void){printf("%d %d",f(5),twice(4));}',
    ),
    Program(
        "weak-constructors-thread-local",
        "int f(void); int order(void); int t(int n);",
        'static int log_[8],n; __attribute__((constructor(300))) static void c3(void){log_[n++]=3;} __attribute__((constructor)) static void c9(void){log_[n++]=9;} __attribute__((constructor(101))) static void c1(void){log_[n++]=1;} __attribute__((weak)) int w(void){return 7;} static int al(void) __attribute__((alias("w"))); int order(void){int r=n;for(int i=0;i<n;i++)r=r*10+log_[i];return r;} int f(void){return w()*10+al();} static _Thread_local int x=5; _Thread_local static int z; int t(int k){x+=k;z-=k;return x*100+z;}',
        'int main(void){int a=t(1);int b=t(2);printf("%d %d %d %d",f(),order(),a,b);}',
    ),
    Program(
        "floats",
        "void f(double*d,float*s,long*i);",
        "#include <math.h>\n#include <string.h>\nvoid f(double*d,float*s,long*i){d[0]=(double)(unsigned long)i[0];s[0]=(float)i[1];d[1]=(float)d[7];i[2]=(long)s[7];i[3]=(unsigned char)(int)d[6];d[2]=fmod(d[6],d[7]);d[3]=floor(-2.5)+ceil(2.5)+trunc(-7.9)+round(2.5)+rint(3.5)+nearbyint(-0.5);d[4]=0x1.fffffffffffffp-1022/4;s[1]=1e-45f*3;d[5]=sqrt(d[6])+fabs(-d[7])+copysign(3,-0.0)+fma(d[6],d[7],1)+ldexp(1.5,-1074)+fdim(3,1)+hypot(3,4);i[4]=lround(-2.5)+llrint(2.5)+isnan(NAN)+(1/ -0.0<0);float z=s[7];memcpy(&i[5],&z,4);}",
        'int main(void){double d[8]={0};float s[8]={0};long i[8]={-1,0x7fffffffffffff1,0};d[6]=123.456;d[7]=7.89;s[7]=-1e10f;f(d,s,i);for(int k=0;k<8;k++)printf("%.17g %.9g %ld\\n",d[k],s[k],i[k]);}',
    ),
    Program(
        "vectors",
        "void f(float*p,int n); typedef int v4 __attribute__((vector_size(16)));",
        "typedef float v __attribute__((vector_size(32))); typedef int vi __attribute__((vector_size(32))); void f(float*p,int n){for(int i=0;i<n;i+=8){v x;__builtin_memcpy(&x,p+i,32);vi m=x>2.0f;x=x*x+1.0f;x=__builtin_shufflevector(x,x,7,6,5,4,3,2,1,0);vi y=__builtin_convertvector(x,vi);y=(y&~m)<<1;x=__builtin_convertvector(y,v);__builtin_memcpy(p+i,&x,32);}}",
        'int main(void){float a[16];for(int i=0;i<16;i++)a[i]=i*.5f;f(a,16);for(int i=0;i<16;i++)printf("%g ",a[i]);}',
    ),
    Program(
        "variable-arguments-inside",
        "int f(void);",
        "#include <stdarg.h>\nstruct a{char c[3];}; struct b{long a,b;}; struct c{double x,y;}; struct d{long a[4];}; struct e{float x,y;};\nstatic double g(int n,...){va_list a;va_start(a,n);double r=va_arg(a,int);struct a s=va_arg(a,struct a);struct b t=va_arg(a,struct b);r+=va_arg(a,double);struct c u=va_arg(a,struct c);struct d w=va_arg(a,struct d);struct e z=va_arg(a,struct e);va_list b;va_copy(b,a);__int128 q=va_arg(a,__int128);r+=(long)va_arg(b,__int128)+va_arg(b,int);va_end(b);r+=va_arg(a,int);va_end(a);return r+s.c[0]+s.c[2]*10+t.a*100+t.b*1000+u.x+u.y+w.a[3]+z.x+z.y+(long)(q>>64);}\nint f(void){return g(1,2,(struct a){{3,4,5}},(struct b){6,7},8.5,(struct c){9,10},(struct d){{1,2,3,4}},(struct e){1.5,2.5},((__int128)77<<64)|5,-9);}",
        'int main(void){printf("%d",f());}',
    ),
    Program(
        "struct-results",
        "struct a{char a;short b;int c;}; struct a f(int x); struct b{int a;void*p;}; struct b g(void*p); struct c{float x;}; struct c h(struct c x,float y); struct d{double x;}; struct d k(struct d x); struct e{double a,b;}; struct e m(double x,struct e y); struct n{long a,b,c,d;}; struct n o(int x,int y); struct p{char c[40];}; struct p q(char c);",
        "struct a f(int x){return (struct a){x,x*2,x*3};} struct b g(void*p){return (struct b){5,p};} struct c h(struct c x,float y){x.x+=y;return x;} struct d k(struct d x){x.x*=2;return x;} struct e m(double x,struct e y){y.a+=x;y.b-=x;return y;} struct n o(int x,int y){return (struct n){x,y,x+y,x-y};} struct p q(char c){struct p r;for(int i=0;i<40;i++)r.c[i]=c+i;return r;}",
        'int main(void){struct a x=f(-7);int z;struct b y=g(&z);struct c u=h((struct c){1.5},2);struct d v=k((struct d){1.25});struct e w=m(1,(struct e){2,3});struct n t=o(3,-4);struct p s=q(60);printf("%d %d %d %d %d %g %g %g %g %ld %ld %d",(signed char)x.a,x.b,x.c,y.a,y.p==&z,u.x,v.x,w.a,w.b,t.c,t.d,s.c[39]);}',
    ),
    Program(
        "union-float",
        "union u{float f; unsigned i;}; void g(union u*x); struct s{union u a; long b;}; long h(struct s*p);",
        "void g(union u*x){x->i^=0x80000000;} long h(struct s*p){p->a.f*=2;return p->a.i+p->b;}",
        'int main(void){union u x={1.5f};g(&x);struct s s={x,3};printf("%g %ld",x.f,h(&s));}',
    ),
    Program(
        "string-functions",
        "int f(const char*s,char*o);",
        '#include <string.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <ctype.h>\nint f(const char*s,char*o){char*e;long a=strtol(s,&e,0);double d=strtod(e,&e);unsigned u;char w[20];int n=sscanf(e,"%x %19s",&u,w);int r=sprintf(o,"%ld %.17g %x %s %d %5.2f|%-6d|%+i|%#o|%%|%zu|%td|%c",a,d,u,w,n,3.14159,42,7,8,sizeof u,(o+5)-o,toupper(\'q\'));return r+memcmp("a\\xff","a\\x01",2)/abs(memcmp("a\\xff","a\\x01",2))+(strcmp("\\xe9","a")>0)+isalpha(200)+atoi("-12")+(strrchr(s,\'.\')!=0);}',
        'int main(void){char o[300];int n=f("-0x1F 2.5e-3 beef word",o);printf("%d %s",n,o);}',
    ),
    Program(
        "large-by-value-internal",
        "long f(long x);",
        "struct b{long v[20];char c;}; static __attribute__((noinline)) struct b g(struct b x,long k){x.v[3]+=k;x.c=-1;return x;} long f(long x){struct b y={{1,2,3,4}};y=g(y,x);struct b (*volatile p)(struct b,long)=g;y=p(y,1);return y.v[3]+y.c;}",
        'int main(void){printf("%ld",f(10));}',
    ),
    Program(
        "plain-char",
        "char f(int x); int g(char a,char b); char *h(char*p); int lots(int a,int b,int c,int d,int e,int k,int l,int m,char n,signed char o,unsigned char p); struct s {char a; char b:4;}; int st(struct s x);",
        "char f(int x){return x;} int g(char a,char b){return (a<0)*1000+a*10+b;} char*h(char*p){*p=f(*p+1);return p;} int lots(int a,int b,int c,int d,int e,int k,int l,int m,char n,signed char o,unsigned char p){return n*10000+o*100+p;} int st(struct s x){return x.a*10+x.b;}",
        'int main(void){static int t[256];for(int i=0;i<256;i++)t[i]=i;volatile int v=200;char c=f(v);printf("%d %d ",t[(unsigned char)c],(signed char)c);printf("%d %d ",(unsigned char)f(v+56)==0,g(f(v),f(-1)));char q=127;printf("%d ",(signed char)*h(&q));printf("%d %d",lots(1,2,3,4,5,6,7,8,(char)v,-3,200),st((struct s){(char)-5,(char)3}));}',
    ),
    Program(
        "pragma-pack",
        "#pragma pack(push,2)\nstruct s{char a;long b;int c;};\n#pragma pack(pop)\nlong f(struct s*p);",
        "long f(struct s*p){return p[1].b+p[1].c+sizeof*p;}",
        'int main(void){struct s s[2]={{1,2,3},{4,5,6}};printf("%ld",f(s));}',
    ),
    Program(
        "bool-bit-fields",
        "struct s{_Bool a:1;_Bool b:1;unsigned c:6;unsigned long d:33;signed e:1;}; int f(struct s*p,int n);",
        "int f(struct s*p,int n){int r=0;for(int i=0;i<n;i++){r+=p[i].a+p[i].b*2+p[i].c*3+p[i].e;p[i].d=~0UL;p[i].a=2;}return r;}",
        'int main(void){struct s s[3]={{1,0,33,5,-1},{0,1,63,6,0},{1,1,1,1,-1}};int r=f(s,3);printf("%d %lx %d %d",r,(long)s[2].d,s[1].a,(int)sizeof s);}',
    ),
    Program(
        "table-of-functions",
        "struct v{int (*add)(struct v*,int);signed char (*low)(int);double (*d)(float,double);int n;};struct v*make(int n);",
        "#include <stdlib.h>\nstatic int a(struct v*v,int k){return v->n+=k;} static signed char l(int x){return x;} static double d(float x,double y){return x*y;} struct v*make(int n){struct v*v=malloc(sizeof*v);v->add=a;v->low=l;v->d=d;v->n=n;return v;}",
        'int main(void){struct v*v=make(5);printf("%d %d %g",v->add(v,7),v->low(200),v->d(1.5f,2));}',
    ),
    Program(
        "nested-callback",
        "int f(int (*(*p)(int))(int,int),int k);",
        "int f(int (*(*p)(int))(int,int),int k){return p(k)(3,4)+p(k+1)(3,4);}",
        'int A(int a,int b){return a*b;}int B(int a,int b){return a-b;}int (*P(int k))(int,int){return k%2?A:B;}int main(void){printf("%d",f(P,1));}',
    ),
    Program(
        "stack-align",
        "long f(int n);",
        "#include <stdint.h>\nlong f(int n){_Alignas(64) char a[64];char v[n];__attribute__((aligned(32))) int b;a[0]=n;v[0]=1;b=2;return ((uintptr_t)a%64)+((uintptr_t)&b%32)+a[0]+v[0]+b;}",
        'int main(void){printf("%ld",f(5));}',
    ),
    Program(
        "packed-enum",
        "enum __attribute__((packed)) e{A,B}; enum e f(enum e x); struct s{enum e a;char b;}; int g(struct s*p);",
        "enum e f(enum e x){return !x;} int g(struct s*p){return p->b+sizeof*p;}",
        'int main(void){struct s s={A,5};printf("%d %d",f(A),g(&s));}',
    ),
    Program(
        "signed-shift",
        "int f(int x,int s);",
        "int f(int x,int s){return (x<<(s&31))+(x>>(s&31))+((unsigned)x>>(s&31));}",
        'int main(void){printf("%d",f(-77,5));}',
    ),
    Program(
        "common",
        "int f(void);",
        "int c; int c; static int b[1000]; int f(void){c++;b[999]=c;return b[999]+sizeof b;}",
        'int main(void){printf("%d",f());}',
    ),
    Program(
        "wchar",
        "#include <wchar.h>\nint f(wchar_t w); int g(const wchar_t*s);",
        "int f(wchar_t w){return w<0?-1:w;} int g(const wchar_t*s){int n=0;while(s[n])n++;return n;}",
        '#include <wchar.h>\nint main(void){printf("%d %d",f(L\'x\'),g(L"abc"));}',
    ),
)


@pytest.fixture(scope="module")
def built() -> dict[str, tuple[Package, Path, str]]:
    """Packages by program, with what a native build prints: each is built once."""
    return {}


@pytest.mark.parametrize("arch", SLOTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_prints_what_a_native_build_prints(
    program: Program, arch: str, built: dict[str, tuple[Package, Path, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    driver = INCLUDES + program.driver
    if program.name not in built:
        directory = tmp_path_factory.mktemp(program.name)
        made = package(directory, program.header, program.source)
        built[program.name] = made, directory, native(directory, driver)
    made, directory, expected = built[program.name]
    (directory / arch).mkdir(exist_ok=True)
    (directory / arch / "api.h").write_text(program.header + "\n")
    done = run_with(driver, installed(made, arch), arch, directory / arch)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected != ""


CXX_HEADER = """
#ifdef __cplusplus
extern "C" {
#endif
int total(int n);
int order(void);
int twice(int (*call)(int), int n);
#ifdef __cplusplus
}
#endif
"""
CXX = """
namespace {
int seen;
struct Shape { virtual int area() const = 0; virtual int more(int n) { return n; } int made = ++seen; };
struct Square : Shape { int side; explicit Square(int s) : side(s) {} int area() const override { return side * side; } };
struct Box final : Shape { int a, b; Box(int x, int y) : a(x), b(y) {} int area() const override { return a * b; } int more(int n) override { return -n; } };
template <class T, int N> struct Stack { T items[N] = {}; int used = 0; void push(T t) { items[used++] = t; } T sum() const { T r{}; for (T t : items) r += t; return r; } };
Square first(3);
Box second(first.side, 5);
// What a class with pure virtual functions needs and no run-time library gives.
}
extern "C" void __cxa_pure_virtual() { __builtin_trap(); }
namespace {
template <class F> int apply(F f, int n) { return f(n) + f(n + 1); }
}
extern "C" int total(int n) {
  Shape *shapes[] = {&first, &second};
  Stack<long, 8> stack;
  for (Shape *s : shapes) { stack.push(s->area()); stack.push(s->more(n)); }
  static int calls = first.side;
  return static_cast<int>(stack.sum()) * 10 + ++calls;
}
extern "C" int order(void) { return seen * 100 + second.made * 10 + first.made; }
extern "C" int twice(int (*call)(int), int n) { return apply([&](int x) { return call(x) * n; }, n); }
"""
CXX_DRIVER = INCLUDES + """
static int minus(int x) { return x - 10; }
int main(void) { int a = total(7); int b = total(8); printf("%d %d %d %d", a, b, order(), twice(minus, 3)); }
"""


@pytest.mark.parametrize("arch", SLOTS)
def test_freestanding_cxx(arch: str, tmp_path: Path) -> None:
    made = package(tmp_path, CXX_HEADER, CXX, build='language = "c++"')
    (tmp_path / arch).mkdir()
    (tmp_path / arch / "api.h").write_text(CXX_HEADER)
    done = run_with(CXX_DRIVER, installed(made, arch), arch, tmp_path / arch)
    assert done.stdout == "244 245 221 -39"
